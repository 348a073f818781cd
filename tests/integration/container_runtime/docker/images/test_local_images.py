"""Tests of image names resolved to the engine's images."""

import base64
import json
import socket
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import pytest

from container_runtime.docker.border import connect
from container_runtime.docker.images.local_images import LocalImages, missing_images
from container_runtime.images.catalogue import ImageCatalogue
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


@pytest.mark.docker
def test_a_registry_with_a_login_is_asked_with_what_docker_login_has_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with run_registry("127.0.0.1", port, tmp_path, with_login=True) as host:
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
