"""Connection to the Docker engine, and translation of its errors."""

import errno
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import docker
import docker.errors
import requests.exceptions
import urllib3.exceptions

from container_runtime.docker.socket_permission import explain_refusal
from container_runtime.runtime import (
    ContainerNotFoundError,
    ContainerRuntimeError,
    ContainerStartError,
    EngineRefusedError,
    EngineUnavailableError,
)

REQUEST_SECONDS = 60.0
# Where systemd holds the socket of an engine that is shut down, a connection is taken, but not answered.
RECONNECT_SECONDS = 2
_LOCAL_ENGINE = "unix:///var/run/docker.sock"
# The client's name for every socket.
_SOCKET_URL = "http+docker://localhost"


def connect() -> docker.APIClient:
    """Connect to the engine that ``DOCKER_HOST`` names, or to the local one, and return its client.

    Raises:
        EngineRefusedError: this user may not open the engine's socket.
        EngineUnavailableError: the engine does not answer.
    """
    with translated("connect"):
        address = find_engine_address()
        if address.startswith("unix://"):
            # Try the socket first: the client leaves its socket open if nothing answers.
            path = address.removeprefix("unix://")
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(path)
                except PermissionError as exc:
                    raise EngineRefusedError(explain_refusal(Path(path))) from exc
        # Use the low-level client. The other one inspects the container after every call, which adds 0.1 s to a start.
        api: docker.APIClient = docker.from_env(timeout=int(REQUEST_SECONDS), max_pool_size=64).api
        if address.startswith("unix://"):
            api.trust_env = False  # to look for a proxy, which a socket has not, is a third of the time of a request
        return api


def reconnect(version: str) -> None:
    """Check that the engine of ``connect`` accepts another connection, and answers.

    Args:
        version: the engine's API version, which is not asked for again.

    Raises:
        EngineUnavailableError: it does not.
    """
    with translated("connect"), closing(docker.from_env(version=version, timeout=RECONNECT_SECONDS)) as client:
        client.ping()


def find_engine_address() -> str:
    """Return the address of the engine that ``connect`` connects to."""
    return os.environ.get("DOCKER_HOST") or _LOCAL_ENGINE


def build_url(api: docker.APIClient, path: str) -> str:
    """Return the URL of an API endpoint, for requests for which the client has no suitable method."""
    return f"{api.base_url}/v{api.api_version}{path}"


def raise_for_status(response: Any) -> None:
    """Raise the client's error if the response is an error, as the client's methods do."""
    try:
        response.raise_for_status()
    except requests.exceptions.HTTPError as exc:
        raise docker.errors.create_api_error_from_http_exception(exc) from exc


def read_transfer(lines: Iterable[dict[str, Any]], doing: str) -> Iterator[dict[str, Any]]:
    """Yield an engine's messages about an image that it pulls, pushes or loads.

    Raises:
        ContainerRuntimeError: one of them reports an error, which the status of the answer does not.
    """
    for line in lines:
        if "error" in line:
            raise ContainerRuntimeError(f"Cannot {doing}: {line['error']}")
        yield line


def is_read_timeout(exc: BaseException) -> bool:
    """Return whether a request exceeded its time limit.

    If the limit is exceeded while the body is read, the error is wrapped in a ``ConnectionError``.
    """
    return isinstance(exc, requests.exceptions.ReadTimeout) or any(
        isinstance(cause, urllib3.exceptions.ReadTimeoutError) for cause in (*exc.args, exc.__cause__, exc.__context__)
    )


@contextmanager
def allowed(*statuses: int) -> Iterator[None]:
    """Ignore that the engine refuses a request with one of these status codes."""
    try:
        yield
    except docker.errors.APIError as exc:
        if exc.status_code not in statuses:
            raise


@contextmanager
def translated(doing: str, *, start: bool = False) -> Iterator[None]:
    """Translate errors of the engine, its client and the connection into this package's errors.

    Args:
        doing: description of the operation, for the message.
        start: whether a request that the engine refuses means that a container does not start.
    """
    try:
        yield
    except docker.errors.APIError as exc:
        text = f"Cannot {doing}: {exc.explanation or _name_engine(str(exc))}"
        if start and exc.is_client_error():
            raise ContainerStartError(text) from exc
        if isinstance(exc, docker.errors.NotFound):
            raise ContainerNotFoundError(text) from exc
        if start:
            raise ContainerStartError(text) from exc
        raise ContainerRuntimeError(text) from exc
    except (
        docker.errors.DockerException,
        requests.exceptions.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    ) as exc:
        # What the client raises for a connection is a RequestException or an error without such a number.
        if isinstance(exc, OSError) and exc.errno in _ERRORS_OF_FILES:
            raise (ContainerStartError if start else ContainerRuntimeError)(f"Cannot {doing}: {exc}") from exc
        raise EngineUnavailableError(f"Cannot {doing}: {_describe_silence(exc)}") from exc


# Errors of files on this machine, such as those that a container is given: the engine has nothing to do with them.
_ERRORS_OF_FILES = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EEXIST,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOSPC,
        errno.ENOTEMPTY,
        errno.EPERM,
        errno.EROFS,
        errno.EXDEV,
    }
)
# Docker puts it into every container.
_OWN_CONTAINER = Path("/.dockerenv")


def _describe_silence(exc: Exception) -> str:
    """Say which engine does not answer, and what to do: nodes of a Swarm are reached through their agents."""
    request = getattr(exc, "request", None)
    node = urlsplit(getattr(request, "url", None) or "").netloc
    if node and node != "localhost" and node not in find_engine_address():
        return (
            f"the Swarm's node at {node} does not answer ({exc}). See `docker node ls` and "
            "`smdebug-emulator doctor --runtime swarm`."
        )
    remedy = "Start one (smdebug-emulator engine start)"
    if _OWN_CONTAINER.exists():
        remedy += ", give this container its socket (docker run -v /var/run/docker.sock:/var/run/docker.sock)"
    return f"no Docker engine answers ({_name_engine(str(exc))}). {remedy}, or use --runtime process."


def _name_engine(text: str) -> str:
    """Put the engine's address in place of the one that the client invents for a socket."""
    return text.replace(_SOCKET_URL, find_engine_address())
