"""Tests of the commands about images and the Docker engine."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.wheelhouse import key_of_requirements
from container_runtime.process import back_end
from emulator.cli.commands import main
from emulator.cli.images import images

REQUIREMENT = "no-such-package==1"


@pytest.fixture
def no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """One image that needs an environment of its own; returns the cache, where pip's part is done already."""
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "image.toml").write_text(f'name = "tiny-training"\nrequirements = ["{REQUIREMENT}"]\n')
    for module in (images, back_end):
        monkeypatch.setattr(module, "ImageCatalogue", lambda: ImageCatalogue(tmp_path))
    cache = tmp_path / "cache"
    monkeypatch.setattr("container_runtime.process.environments.locate_cache", lambda: cache)
    wheels = cache / "wheels" / key_of_requirements([REQUIREMENT])
    (wheels / "pip-1-py3-none-any.whl" / "pip").mkdir(parents=True)
    (wheels / "pip-1-py3-none-any.whl" / "pip" / "__main__.py").touch()
    return cache


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments, env={"COLUMNS": "200"})
    return result.exit_code, result.output


@pytest.mark.usefixtures("no_engine")
def test_environments_are_built_ahead_and_listed(tiny: Path) -> None:
    assert "tiny-training  no engine answers  built when first needed\n" in run("images", "list")[1]
    (listed,) = json.loads(run("images", "list", "--json")[1])
    assert listed == {
        "name": "tiny-training",
        "repositories": ["tiny-training"],
        "docker": "no engine answers",
        "process": "built when first needed",
    }
    code, text = run("images", "build")
    assert (code, "built: tiny-training." in text) == (0, True), text
    assert "tiny-training: building the environment of tiny-training, once: fetching no-such-package==1" in " ".join(
        text.split()  # wherever the width of the terminal breaks the line
    )
    assert "tiny-training: what it takes: a build takes some minutes, once" in " ".join(text.split())
    (folder,) = (tiny / "venvs").glob("tiny-training-*/")
    assert json.loads(run("images", "list", "--json")[1])[0]["process"] == str(folder)
    assert "tiny-training  no engine answers  built\n" in run("images", "list")[1]
    assert "built: none, all are up to date." in run("images", "build", "tiny-training", "--runtime", "process")[1]


@pytest.mark.usefixtures("no_engine")
@pytest.mark.parametrize("runtime", ["process", "auto"])
def test_an_unknown_image_is_one_line(runtime: str) -> None:
    code, text = run("images", "build", "--runtime", runtime, "no-such")
    assert (code, text.count("\n")) == (1, 1)
    assert text.startswith("No image named no-such; there are emulator, huggingface-pytorch-training, ")


@pytest.mark.docker
def test_every_image_of_the_engine_is_listed() -> None:
    code, text = run("images", "list")
    assert code == 0
    for definition in ImageCatalogue():
        (line,) = (line for line in text.splitlines() if line.startswith(f"{definition.name} "))
        assert "MB" in line or (definition.on_demand and "not built" in line)


@pytest.mark.docker
def test_an_unknown_docker_image_is_one_line() -> None:
    code, text = run("images", "build", "--runtime", "docker", "no-such")
    assert code == 1
    assert "pytorch-training" in text


@pytest.mark.usefixtures("no_engine")
def test_without_an_engine() -> None:
    assert run("engine", "status") == (1, "No Docker engine answers.\n")
    assert run("engine", "status", "--quiet") == (1, "")
    assert run("engine", "status", "--json") == (1, '{"engine": null}\n')
    code, text = run("engine", "start")
    assert (code, "DOCKER_HOST" in text, text.count("\n")) == (1, True, 1)
    code, text = run("images", "build", "--runtime", "docker")
    assert (code, "smdebug-emulator engine start" in text, text.count("\n")) == (1, True, 1)
