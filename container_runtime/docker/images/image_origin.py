"""Common base image of all our images: a small Debian 12 with Python 3.11.

It is pulled if a container registry can be reached, otherwise built with debootstrap.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import docker
import docker.errors
import requests.exceptions
import urllib3.exceptions

from container_runtime.docker.border import build_url
from container_runtime.docker.daemon import install_packages
from container_runtime.runtime import ContainerRuntimeError

PUBLISHED = "python:3.11-slim-bookworm"
_SUITE = "bookworm"
_PACKAGES = ("python3", "python3-venv", "ca-certificates")
_NOT_IN_IMAGE = (
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./usr/share/doc/*",
    "./usr/share/info/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/apt/*",
    "./var/lib/apt/lists/*",
    "./var/log/*",
)
_PULL_SILENCE_SECONDS = 30.0


def ensure_origin(api: docker.APIClient, made: str, say: Callable[[str], None]) -> str:
    """Return the name of the local base image. Pull or build the image if there is none.

    Args:
        api: client of the engine.
        made: name for the image if it is built here.
        say: called with progress messages.

    Raises:
        ContainerRuntimeError: the image can neither be pulled nor built; the message says what to do.
    """
    for name in (PUBLISHED, made):
        if api.images(name):
            return name
    say(f"pulling {PUBLISHED}")
    refusal = _pull(api)
    if refusal is None:
        return PUBLISHED
    if os.geteuid() != 0:
        raise ContainerRuntimeError(
            f"{PUBLISHED} cannot be pulled ({refusal}). Load it with `docker load`, or run this as root: then it is "
            "made from Debian's packages."
        )
    if shutil.which("debootstrap") is None:
        install_packages(("debootstrap",), say)
    say("no container registry can be reached; installing Debian packages with debootstrap (about a minute)")
    _make(api, made, say)
    return made


def _pull(api: docker.APIClient) -> str | None:
    """Pull the published image. Return why that failed, or None on success."""
    repository, tag = PUBLISHED.split(":")
    try:
        # The engine reports progress all the time while a registry answers. A long silence means that none can be
        # reached.
        response = api.post(
            build_url(api, "/images/create"),
            params={"fromImage": repository, "tag": tag},
            stream=True,
            timeout=_PULL_SILENCE_SECONDS,
        )
        if not response.ok:
            return str(response.json().get("message", response.reason))
        for _ in response.iter_lines():
            pass
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError) as exc:
        return str(exc)
    return None if api.images(PUBLISHED) else "the registry refused"


def _make(api: docker.APIClient, name: str, say: Callable[[str], None]) -> None:
    with tempfile.TemporaryDirectory(prefix="smdebug-emulator-origin-") as temporary:
        root = Path(temporary) / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE, str(root)]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            last = "\n".join(done.stdout.strip().splitlines()[-5:])
            raise ContainerRuntimeError(f"`{' '.join(command)}` failed:\n{last}")
        say("importing it")
        excluded = [f"--exclude={pattern}" for pattern in _NOT_IN_IMAGE]
        with subprocess.Popen(
            ["tar", "-C", str(root), *excluded, "-c", "."],  # noqa: S607 - found on root's PATH like debootstrap
            stdout=subprocess.PIPE,
        ) as tar:
            repository, _, tag = name.rpartition(":")
            assert tar.stdout is not None
            try:
                api.import_image_from_stream(tar.stdout, repository=repository, tag=tag)
            except docker.errors.APIError as exc:
                raise ContainerRuntimeError(f"The engine did not take {name}: {exc.explanation or exc}") from exc
        if tar.returncode:
            raise ContainerRuntimeError(f"tar of {root} failed with exit code {tar.returncode}; is the disk full?")
