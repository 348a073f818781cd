"""Tests of image names resolved to the engine's images."""

import base64
import json
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import docker
import pytest

from container_runtime.docker.border import connect
from container_runtime.docker.images.local_images import LocalImages, missing_images
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.loopback_network import draw_port
from container_runtime.runtime import ImageNotFoundError, VersionRefusedError
from tests.registry import PASSWORD, USER, run_registry


@pytest.mark.docker
def test_one_question_tells_which_images_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    images = docker.APIClient.images

    def count(*args: Any, **given: Any) -> Any:
        asked.append(given)
        return images(*args, **given)

    monkeypatch.setattr(docker.APIClient, "images", count)
    for name in ("lambda", f"framework-{uuid.uuid4().hex[:12]}", "pytorch-training"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "image.toml").write_text(f'name = "{name}"\nversion = "1.0"\n')
    with closing(connect()) as api:
        missing = missing_images(api, ImageCatalogue(tmp_path))
    assert [name.startswith("smdebug-emulator/framework-") for name in missing] == [True]
    assert len(asked) == 1


@pytest.mark.docker
def test_strict_versions_take_an_image_that_was_loaded_under_the_requested_name(tmp_path: Path) -> None:
    name = f"framework-{uuid.uuid4().hex[:12]}"
    (tmp_path / "image.toml").write_text(f'name = "{name}"\nversion = "2.13.0"\n')
    api = connect()
    try:
        images = LocalImages(api, ImageCatalogue(tmp_path, strict=True))
        with pytest.raises(VersionRefusedError):
            images.describe_substitution(f"{name}:2.3.0")
        with pytest.raises(VersionRefusedError):
            images.resolve(f"{name}:2.3.0")
        api.tag("smdebug-emulator/lambda:latest", name, "2.3.0")
        try:
            assert images.has(f"{name}:2.3.0")
            assert not images.has(f"{name}:2.4.0")
            assert not images.has("no name")
            assert images.describe_substitution(f"{name}:2.3.0") is None
            assert images.resolve(f"{name}:2.3.0").resolved.local == f"{name}:2.3.0"
        finally:
            api.remove_image(f"{name}:2.3.0")
    finally:
        api.close()


@contextmanager
def run_registry_with_login() -> Iterator[tuple[str, list[str | None]]]:
    """Stand in for a registry that has no image and asks for a login; yields its host, and what it is told of one."""
    told: list[str | None] = []

    class Registry(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            told.append(self.headers["Authorization"])
            self.send_response(404 if told[-1] else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="tests"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}", told
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.docker
def test_a_registry_is_told_the_login_that_docker_has_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    stored = base64.b64encode(b"user:secret").decode()
    with run_registry_with_login() as (host, told):
        for content in ({}, {"auths": {host: {"auth": stored}}}):
            (tmp_path / "config.json").write_text(json.dumps(content))
            assert f"Basic {stored}" not in told
            with closing(connect()) as api, pytest.raises(ImageNotFoundError, match="cannot be pulled"):
                LocalImages(api, ImageCatalogue()).resolve(f"{host}/team/private:1")
    assert f"Basic {stored}" in told


@pytest.mark.docker
@pytest.mark.nightly
def test_a_registry_with_a_login_is_asked_with_what_docker_login_has_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with run_registry("127.0.0.1", draw_port(), tmp_path, with_login=True) as host:
        name = f"{host}/team/private:1"
        with closing(connect()) as api:
            api.tag("smdebug-emulator/lambda:latest", f"{host}/team/private", "1")
            list(api.push(name, auth_config={"username": USER, "password": PASSWORD}, stream=True))
            api.remove_image(name)
            with pytest.raises(ImageNotFoundError, match=r"(?s)cannot be pulled .*no basic auth credentials"):
                LocalImages(api, ImageCatalogue()).resolve(name)
        stored = {"auth": base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}
        (tmp_path / "config.json").write_text(json.dumps({"auths": {host: stored}}))
        with closing(connect()) as api:
            try:
                assert LocalImages(api, ImageCatalogue()).resolve(name).resolved.local == name
            finally:
                api.remove_image(name)
