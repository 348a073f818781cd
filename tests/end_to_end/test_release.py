"""Test of the files of a release, and of an installation from them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from container_runtime.images.installation import ROOT
from release.__main__ import make_release
from tests.wheel import build_wheel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.nightly


def run(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600, cwd=ROOT).stdout


def make_environment(folder: Path, *arguments: str | Path) -> Path:
    run(sys.executable, "-m", "venv", folder)
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


@pytest.mark.timeout(1200)
def test_what_a_release_holds_can_be_installed(tmp_path: Path) -> None:
    tools = make_environment(tmp_path / "tools", "--group", "release")
    folder = tmp_path / "release"

    make_release(folder, tools, rehearse=True, url="https://project.example/owner/emulator")

    sums = dict(line.split()[::-1] for line in (folder / "SHA256SUMS").read_text().splitlines())
    wheel, sdist = next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))
    assert {wheel.name, sdist.name, "sbom.cdx.json", "provenance.json", "CHANGES.md"} == sums.keys()
    assert {each["name"] for each in json.loads((folder / "sbom.cdx.json").read_text())["components"]} >= {
        "moto",
        "flask",
    }
    assert list((folder / "docs").glob("*/index.html"))
    # Built once more from the sdist alone, without git and without the address.
    run(tools, "-m", "build", "--wheel", "--outdir", tmp_path / "again", unpack(sdist, tmp_path / "unpacked"))
    for each in (wheel, *(tmp_path / "again").glob("*.whl")):
        assert "Project-URL: Issues, https://project.example/owner/emulator/issues" in read_metadata(each)
    assert [each["aliases"] for each in json.loads((folder / "docs" / "versions.json").read_text())] == [["latest"]]
    for number, distribution in enumerate((wheel, sdist)):
        python = make_environment(tmp_path / str(number), distribution)
        text = "import smdebug, numpy; print(smdebug.__file__)"
        assert str(tmp_path / str(number)) in run(python, "-I", "-c", text)


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
