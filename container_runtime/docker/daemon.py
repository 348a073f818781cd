"""Detection, installation and start of a Docker engine."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from container_runtime.docker.border import connect, find_engine_address
from container_runtime.runtime import EngineRefusedError, EngineUnavailableError

_PACKAGES = ("docker.io", "iptables", "debootstrap")
_LOG = Path("/var/log/smdebug-emulator-dockerd.log")
_START_SECONDS = 60.0
_POLL_SECONDS = 0.2


def describe_engine() -> str | None:
    """Return version and address of the engine that answers, or None if none answers."""
    try:
        api = connect()
    except EngineUnavailableError:
        return None
    with closing(api):
        return f"Docker Engine {api.version()['Version']} at {find_engine_address()}"


def explain_refused_engine() -> str | None:
    """Return why this user may not open the engine's socket, and what to do. None if permission is not the problem."""
    try:
        connect().close()
    except EngineRefusedError as error:
        return str(error)
    except EngineUnavailableError:
        return None
    return None


def start_engine(say: Callable[[str], None]) -> str:
    """Start an engine if none answers, and install it first if necessary and possible.

    Args:
        say: called with progress messages.

    Returns:
        Version and address of the engine that answers now.

    Raises:
        EngineUnavailableError: no engine answers and none can be started, or this user may not open the engine's
            socket; the message says why.
    """
    if (found := describe_engine()) is not None:
        return found
    if (refusal := explain_refused_engine()) is not None:
        raise EngineRefusedError(refusal)
    if address := os.environ.get("DOCKER_HOST"):
        raise EngineUnavailableError(
            f"No engine answers at DOCKER_HOST={address}: start that one, or unset DOCKER_HOST."
        )
    if os.geteuid() != 0:
        raise EngineUnavailableError(
            "No Docker engine answers, and starting one takes root: run this with sudo, or join the group `docker` of "
            "an engine that runs. Without an engine the emulator uses local processes."
        )
    if shutil.which("dockerd") is None:
        install_packages(_PACKAGES, say)
        # The package starts the service itself if the machine has a service manager.
        if (found := describe_engine()) is not None:
            return found
    return _run_daemon(say)


def install_packages(packages: Sequence[str], say: Callable[[str], None]) -> None:
    """Install Debian packages. This requires root.

    Raises:
        EngineUnavailableError: there is no apt-get, or it failed; the message holds the last lines of its output.
    """
    wanted = ", ".join(packages)
    if shutil.which("apt-get") is None:
        raise EngineUnavailableError(f"There is no apt-get to install {wanted} with.")
    say(f"installing {wanted} with apt-get")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", *packages]):
        done = subprocess.run(
            command, check=False, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        if done.returncode:
            last = "\n".join(done.stdout.strip().splitlines()[-5:])
            raise EngineUnavailableError(f"`{' '.join(command)}` failed:\n{last}")


def _run_daemon(say: Callable[[str], None]) -> str:
    say(f"starting dockerd, its log is {_LOG}")
    with _LOG.open("wb") as log:
        # The daemon has to outlive this command, so it gets a new session and no pipes.
        daemon = subprocess.Popen(
            ["dockerd"],  # noqa: S607 - wherever the package put it
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        if (found := describe_engine()) is not None:
            return found
        if daemon.poll() is not None:
            break
        time.sleep(_POLL_SECONDS)
    state = "does not answer" if daemon.poll() is None else f"ended with exit code {daemon.returncode}"
    last = "\n".join(_LOG.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])
    raise EngineUnavailableError(f"dockerd {state}; the end of {_LOG}:\n{last}")
