"""Certificate trust of containers: the CA file and its environment variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from container_runtime.spec import Mount

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_TARGET = "/var/smdebug-emulator"


def build_trust_variables(bundle: str) -> dict[str, str]:
    """Return what the clients of a language read: boto3 and AWS's command line the first, Node the second.

    Args:
        bundle: the file that they are to trust.
    """
    return {"AWS_CA_BUNDLE": bundle, "NODE_EXTRA_CA_CERTS": bundle}


def build_trust(
    bundle: Path | None, path_in_container: Callable[[Mount, str], str]
) -> tuple[dict[str, str], tuple[Mount, ...]]:
    """Return the variables and the mount that a container gets in addition; none where there is no TLS.

    Args:
        bundle: the file that it is to trust, alone in its folder: a folder is what is mounted, so that a container sees
            the file that an emulator after this one writes.
        path_in_container: of the container's back end.
    """
    if bundle is None:
        return {}, ()
    mount = Mount(bundle.parent, _TARGET, read_only=True)
    return build_trust_variables(path_in_container(mount, bundle.name)), (mount,)
