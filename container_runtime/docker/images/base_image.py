"""Base images: an image's Python packages, installed in a container.

The container then becomes the base image. The wheels are in a volume of it, which no image contains. A Dockerfile would
need one stage with the wheels and another one that copies what was installed, which takes as long as the installation.
"""

import json
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

import docker
import docker.errors
from docker.types import Mount as EngineMount

from container_runtime.docker.border import build_url, raise_for_status, translated
from container_runtime.docker.images.image_content import hash_parts, write_context
from container_runtime.runtime import ContainerRuntimeError

PROGRAM = "install.sh"
"""File of ``rules_images/base`` that the container runs."""
STEP_SECONDS = 1800
"""Longest time of one step of a build."""

# A folder that every Debian has. The volume hides it, and the image has it empty.
_VOLUME = "/mnt"
_PATH = "/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SHOWN_LINES = 15


def build_base_image(
    api: docker.APIClient, name: str, labels: Mapping[str, str], origin: str, program: Path, wheels: Path, cache: Path
) -> None:
    """Build a base image.

    Args:
        api: client of the engine.
        name: name of the image, with its tag.
        labels: labels of the image.
        origin: name of the image with Python that it stands on.
        program: the file ``PROGRAM``.
        wheels: folder of the wheels and their requirements.txt.
        cache: folder of the lock that the caller holds. The container is named after it, so the next build with this
            lock removes what an interrupted one left.

    Raises:
        ContainerRuntimeError: the installation failed; the message has the last lines of its output.
        EngineUnavailableError: the engine does not answer.
    """
    container = name_container(cache)
    with translated(f"build {name}"):
        _remove(api, container)
        try:
            _create(api, container, origin, program, wheels)
            _install(api, container, name)
            _commit(api, container, name, labels)
        finally:
            _remove(api, container)


def name_container(cache: Path) -> str:
    """Return the name of the container in which base images are built with a cache, whose lock the caller holds.

    The path alone does not tell caches apart: machines, and containers with a common engine, may each have one there.
    """
    file = cache / "build-id"
    identity = file.read_text(encoding="utf-8") if file.exists() else ""
    if not identity:  # also if it was killed while it wrote the file
        identity = uuid.uuid4().hex
        cache.mkdir(parents=True, exist_ok=True)
        file.write_text(identity, encoding="utf-8")
    return f"smdebug-emulator-build-{hash_parts((), str(cache.resolve()), identity)}"


def _create(api: docker.APIClient, container: str, origin: str, program: Path, wheels: Path) -> None:
    api.create_container(
        origin,
        ["sh", f"{_VOLUME}/{PROGRAM}"],
        name=container,
        host_config=api.create_host_config(network_mode="none", mounts=[EngineMount(_VOLUME, None, type="volume")]),
    )
    with tempfile.TemporaryFile() as archive:
        write_context(archive, {"wheels": wheels, PROGRAM: program})
        # The client's own methods give the engine a minute, which gigabytes may exceed on a slow disk.
        url = build_url(api, f"/containers/{container}/archive")
        raise_for_status(api.put(url, params={"path": _VOLUME}, data=archive, timeout=STEP_SECONDS))


def _install(api: docker.APIClient, container: str, name: str) -> None:
    api.start(container)
    code = api.wait(container, timeout=STEP_SECONDS)["StatusCode"]
    if code:
        said = api.logs(container, tail=_SHOWN_LINES).decode(errors="replace").strip()
        raise ContainerRuntimeError(f"Building {name} failed: {PROGRAM} ended with exit code {code}.\n{said}")


def _commit(api: docker.APIClient, container: str, name: str, labels: Mapping[str, str]) -> None:
    # The image would otherwise run the installation, as the container does. The published origin runs python3, too.
    changes = ['CMD ["python3"]', f"ENV PATH={_PATH}"]
    changes += [f"LABEL {key}={json.dumps(value)}" for key, value in labels.items()]
    repository, _, tag = name.rpartition(":")
    parameters = {"container": container, "repo": repository, "tag": tag, "changes": "\n".join(changes)}
    raise_for_status(api.post(build_url(api, "/commit"), params=parameters, json={}, timeout=STEP_SECONDS))


def _remove(api: docker.APIClient, container: str) -> None:
    """Remove the container and its volume, if there is one of this name."""
    try:
        url = build_url(api, f"/containers/{container}")
        raise_for_status(api.delete(url, params={"force": True, "v": True}, timeout=STEP_SECONDS))
    except docker.errors.NotFound:
        return
