"""Connection to the Docker engine, and translation of its errors."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST_SECONDS = 60.0
_LOCAL_ENGINE = "unix:///var/run/docker.sock"


def connect() -> docker.APIClient:
    """Return a client of the engine that ``DOCKER_HOST`` names, or of the local one, after it has answered.

    Raises:
        EngineRefusedError: this user may not open its socket.
        EngineUnavailableError: it does not answer.
    """
    with translated("connect"):
        address = os.environ.get("DOCKER_HOST") or _LOCAL_ENGINE
        if address.startswith("unix://"):
            # The client would leave its socket open when nobody answers at the other end.
            path = address.removeprefix("unix://")
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(path)
                except PermissionError as exc:
                    raise EngineRefusedError(explain_refusal(Path(path))) from exc
        # The low-level client: the other one inspects again after every call, which costs a start 0.1 s.
        return docker.from_env(timeout=int(REQUEST_SECONDS), max_pool_size=64).api


def build_url(api: docker.APIClient, path: str) -> str:
    """Return the address of a part of the engine's API that the client has no method for, or one that does too much."""
    return f"{api.base_url}/v{api.api_version}{path}"


def raise_for_status(response: Any) -> None:
    """Raise the client's own error for an answer that is one, as its methods do."""
    try:
        response.raise_for_status()
    except requests.exceptions.HTTPError as exc:
        raise docker.errors.create_api_error_from_http_exception(exc) from exc


def is_read_timeout(exc: BaseException) -> bool:
    """Whether a request failed for its own time limit; a limit inside a body comes wrapped in a ConnectionError."""
    return isinstance(exc, requests.exceptions.ReadTimeout) or any(
        isinstance(cause, urllib3.exceptions.ReadTimeoutError) for cause in (*exc.args, exc.__cause__, exc.__context__)
    )


@contextmanager
def translated(doing: str, *, start: bool = False) -> Iterator[None]:
    """Turn errors of the engine, its client and the connection into this package's: the one border.

    Args:
        doing: what was tried, for the message.
        start: whether the engine's refusal of a request means that a container does not start.
    """
    try:
        yield
    except docker.errors.APIError as exc:
        text = f"Cannot {doing}: {exc.explanation or exc}"
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
        raise EngineUnavailableError(
            f"Cannot {doing}: no Docker engine answers ({exc}). Start one (smdebug-emulator engine start), or use "
            "--runtime process."
        ) from exc
