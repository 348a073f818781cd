"""Certificate trust of containers: the CA file and its environment variables."""

from collections.abc import Callable
from pathlib import Path

from container_runtime.spec import Mount

_TARGET = "/var/smdebug-emulator"


def build_trust_variables(bundle: str) -> dict[str, str]:
    """Return the CA file variables that clients read: the first for boto3 and the AWS CLI, the second for Node.

    Args:
        bundle: the CA file.
    """
    return {"AWS_CA_BUNDLE": bundle, "NODE_EXTRA_CA_CERTS": bundle}


def build_trust(
    bundle: Path | None, path_in_container: Callable[[Mount, str], str]
) -> tuple[dict[str, str], tuple[Mount, ...]]:
    """Return the additional variables and mount of a container; both empty without TLS.

    Args:
        bundle: the CA file, alone in its folder. The folder is mounted, so that a container sees the file that a later
            emulator writes.
        path_in_container: returns a mounted path as the container sees it.
    """
    if bundle is None:
        return {}, ()
    mount = Mount(bundle.parent, _TARGET, read_only=True)
    return build_trust_variables(path_in_container(mount, bundle.name)), (mount,)
