"""Test of the files of a release, and of an installation from them."""

import json
import os
import shlex
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from container_runtime.images.installation import ROOT
from release.__main__ import make_release
from tests.end_to_end.test_pythons import find_interpreter
from tests.wheel import build_wheel

pytestmark = pytest.mark.nightly


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600, cwd=ROOT).stdout


def make_environment(folder: Path, *arguments: str | Path, interpreter: str | Path = sys.executable) -> Path:
    run(interpreter, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "pip>=25.1")
    run(python, "-m", "pip", "install", "--quiet", *arguments)
    return python


def unpack(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return unpacked


def read_metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


class Release(NamedTuple):
    """The files of a release, and the interpreter of the tools that made it."""

    folder: Path
    tools: Path

    @property
    def wheel(self) -> Path:
        (wheel,) = self.folder.glob("*.whl")
        return wheel

    @property
    def sdist(self) -> Path:
        (sdist,) = self.folder.glob("*.tar.gz")
        return sdist


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("made")
    tools = make_environment(folder / "tools", "--group", "release")
    make_release(folder / "release", tools, rehearse=True, url="https://project.example/owner/emulator")
    return Release(folder / "release", tools)


@pytest.mark.timeout(1200)
def test_a_release_is_whole_and_builds_itself_again(made: Release, tmp_path: Path) -> None:
    folder = made.folder
    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    assert {made.wheel.name, made.sdist.name, "sbom.cdx.json", "provenance.json", "CHANGES.md"} == sums.keys()
    assert {each["name"] for each in json.loads((folder / "sbom.cdx.json").read_text())["components"]} >= {
        "moto",
        "flask",
    }
    assert list((folder / "docs").glob("*/index.html"))
    # Built once more from the sdist alone, without git and without the address.
    run(made.tools, "-m", "build", "--wheel", "--outdir", tmp_path / "again", unpack(made.sdist, tmp_path / "unpacked"))
    for each in (made.wheel, *(tmp_path / "again").glob("*.whl")):
        assert "Project-URL: Issues, https://project.example/owner/emulator/issues" in read_metadata(each)
    assert [each["aliases"] for each in json.loads((folder / "docs" / "versions.json").read_text())] == [["latest"]]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_each_python_installs_a_release(made: Release, version: str, tmp_path: Path) -> None:
    interpreter = find_interpreter(version)
    for number, distribution in enumerate((made.wheel, made.sdist)):
        python = make_environment(tmp_path / str(number), distribution, interpreter=interpreter)
        text = "import sys, smdebug, smdebug.trials, numpy; print(sys.version_info[:2], smdebug.__file__)"
        said = run(python, "-I", "-c", text)
        assert f"({version.replace('.', ', ')}) {tmp_path / str(number)}" in said


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("tool", ["uvx", "pipx"])
def test_the_one_line_trials_run_from_a_folder_of_wheels(tmp_path: Path, tool: str) -> None:
    """As the README has them, but for the index: the project's own wheel is in a folder."""
    wheels = build_wheel(tmp_path / "wheels").parent
    tools = make_environment(tmp_path / "tools", "uv>=0.9,<1" if tool == "uvx" else "pipx>=1.7,<2").parent
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    _, *arguments = shlex.split(next(line for line in lines if line.startswith(f"{tool} ")))
    found = ["--find-links", str(wheels)]
    if tool == "pipx":
        arguments[1:1] = ["--pip-args", shlex.join(found)]
    else:
        arguments[:0] = found
    homes = {name: str(tmp_path / "home") for name in ("HOME", "PIPX_HOME", "XDG_CACHE_HOME", "UV_CACHE_DIR")}
    assert arguments[-1] == "demo"  # which trains; that is tested elsewhere
    done = subprocess.run(
        [tools / tool, *arguments[:-1], "--version"],
        check=False,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, **homes},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("smdebug-emulator, version ")
