"""Tests of `cache` and `images remove`, and of what a build says that it takes."""

import io
import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import docker.errors
import pytest
from click.testing import CliRunner

from container_runtime.docker.border import connect
from container_runtime.images import build_record
from container_runtime.images.build_record import describe_build, record_build
from container_runtime.images.catalogue import IMAGE_LABEL, ImageCatalogue
from container_runtime.process.environments import COMPLETE, locate_environment
from emulator.cli.commands import main
from emulator.cli.images import stored

NAME = "tiny-training"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache with wheels, an image with its environment and one of earlier requirements, and somebody else's."""
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "image.toml").write_text(f'name = "{NAME}"\nrequirements = ["nothing==1"]\n')
    catalogue, folder = ImageCatalogue(tmp_path), tmp_path / "cache"
    monkeypatch.setattr(stored, "ImageCatalogue", lambda: catalogue)
    monkeypatch.setattr(stored, "locate_cache", lambda: folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setenv("SMDEBUG_EMULATOR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    (definition,) = catalogue
    for environment in (locate_environment(definition, folder).folder, folder / "venvs" / f"{NAME}-0123456789abcdef"):
        (environment / "bin").mkdir(parents=True)
        (environment / "content").write_bytes(b"x" * 100_000)
    (folder / "venvs" / "of-somebody-else-0").mkdir()
    for path in (folder / "wheels" / "key" / "a.whl", tmp_path / "state" / "jobs.sqlite"):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 5_000_000)
    return folder


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments, env={"COLUMNS": "80"})
    return result.exit_code, result.output


def list_folders(cache: Path) -> list[str]:
    return sorted(re.sub("-[0-9a-f]{16}$", "", path.name) for path in (cache / "venvs").iterdir() if path.is_dir())


@pytest.mark.slow
def test_what_lies_where_is_shown(cache: Path) -> None:
    code, text = run("cache")
    assert code == 0
    assert re.search(r"^jobs, S3, logs +5 MB$", text, re.MULTILINE)
    assert re.search(r"^wheels +5 MB$", text, re.MULTILINE)
    assert re.search(rf"^environment {NAME} +\d+ k?B  current$", text, re.MULTILINE)
    assert re.search(rf"^environment {NAME} +\d+ k?B  outdated$", text, re.MULTILINE)
    assert "somebody" not in text
    assert "smdebug-emulator cache remove outdated" in text
    assert max(map(len, text.splitlines())) <= 80 or str(cache) in text
    listed = json.loads(run("cache", "--json")[1])
    assert {each["where"] for each in listed if each["label"] == "Wheels"} == {str(cache / "wheels")}


def test_nothing_is_removed_without_a_word(cache: Path) -> None:
    code, text = run("cache", "remove", "outdated", "wheels")
    assert (code, "give --yes to remove 2 items without confirmation" in text) == (2, True)
    assert (list_folders(cache), (cache / "wheels").exists()) == ([*["of-somebody-else-0"], NAME, NAME], True)


@pytest.mark.slow
def test_what_is_of_no_use_is_removed(cache: Path) -> None:
    code, text = run("cache", "remove", "outdated", "wheels", "clients", "--yes")
    assert (code, text.splitlines()[-1]) == (0, "Removed 2 items.")
    assert (list_folders(cache), (cache / "wheels").exists()) == (["of-somebody-else-0", NAME], False)
    assert run("cache", "remove", "outdated", "--yes") == (0, "Nothing to remove.\n")
    assert run("cache", "remove", "everything")[0] == 2


def test_a_removal_that_is_interrupted_leaves_an_environment_to_be_built_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (definition,) = ImageCatalogue(cache.parent)
    environment = locate_environment(definition, cache)
    (environment.folder / COMPLETE).touch()
    assert environment.is_complete

    def fail(_folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", fail)
        code, text = run("images", "remove", NAME, "--runtime", "process", "--yes")
    assert (code, f"{environment.folder} cannot be removed: Permission denied." in text) == (1, True)
    assert environment.folder.is_dir()
    assert not environment.is_complete


@pytest.mark.slow
def test_an_image_is_removed_by_its_name(cache: Path) -> None:
    assert run("images", "remove", NAME, "--runtime", "docker", "--yes") == (0, "Nothing to remove.\n")
    code, text = run("images", "remove", NAME, "--yes")
    assert (code, text.splitlines()[-1]) == (0, "Removed 2 items.")
    assert list_folders(cache) == ["of-somebody-else-0"]
    assert run("images", "remove", "no-such", "--yes") == (1, f"No image named no-such; there are {NAME}.\n")


@pytest.mark.slow
def test_an_environment_in_use_stays(cache: Path) -> None:
    (definition,) = ImageCatalogue(cache.parent)
    python = locate_environment(definition, cache).folder / "bin" / "python"
    python.symlink_to(sys.executable)
    with subprocess.Popen([python, "-c", "input()"], stdin=subprocess.PIPE) as user:
        code, text = run("images", "remove", NAME, "--yes")
        assert f"is used by process {user.pid}: stop that job" in text
        user.communicate(b"\n")
    assert (code, list_folders(cache)) == (1, ["of-somebody-else-0", NAME])


def test_a_build_says_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytorch = next(each for each in ImageCatalogue() if each.name == "pytorch-training")
    lines = ["torch==2 --hash=sha256:0", "torch==2+cpu --hash=sha256:1", "nvidia-cublas==13 --hash=sha256:2"]
    assert describe_build(tmp_path, "process", pytorch, lines) == (
        "1 packages; 362 MB to fetch, or some 5 GB where pip finds only wheels for GPUs (docs/install.md); "
        "a build takes some minutes, once"
    )
    record_build(tmp_path, "process", pytorch.name, 75.4)
    assert describe_build(tmp_path, "process", pytorch, ()).endswith("; the last build here took 75 s")
    assert "some minutes" in describe_build(tmp_path, "docker", pytorch, ())
    for damage in ("", "[]", '{"process:pytorch-training": "soon"}'):
        (tmp_path / "builds.json").write_text(damage)
        assert "some minutes" in describe_build(tmp_path, "process", pytorch, ())
    monkeypatch.setattr(build_record, "_RECORD", "no/folder")
    record_build(tmp_path, "process", pytorch.name, 1)


@pytest.mark.docker
def test_an_image_of_the_engine_is_removed_by_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = f"tiny-{uuid4().hex[:8]}"
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "image.toml").write_text(f'name = "{name}"\n')
    monkeypatch.setattr(stored, "ImageCatalogue", lambda: ImageCatalogue(tmp_path))
    with closing(connect()) as api:
        dockerfile = f'FROM scratch\nLABEL {IMAGE_LABEL}="{name}"\nENV A=b\n'
        list(api.build(fileobj=io.BytesIO(dockerfile.encode()), tag=f"smdebug-emulator/{name}:latest", rm=True))
        code, text = run("images", "remove", name, "--runtime", "docker", "--yes")
        assert (code, text.splitlines()[-1]) == (0, "Removed 1 item.")
        with pytest.raises(docker.errors.ImageNotFound):
            api.inspect_image(f"smdebug-emulator/{name}:latest")
