"""Tests of CUDA wheels adapted to a CPU-only PyTorch.

The result is the same everywhere, and wheels beside a PyTorch for GPUs stay as they are.
"""

import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from container_runtime.images.cpu_wheels import fit_wheel, fit_wheels
from container_runtime.images.wheelhouse import fetch_cpu_only_wheels, fetch_wheels
from container_runtime.runtime import WheelhouseError
from tests.small_wheel import write_wheel
from tests.unit.container_runtime.images.small_shared_object import GONE, write_shared_object

# Of the length of the name that it takes the place of.
LINKED = write_shared_object().replace(GONE.encode() + b"\0", b"libcudart.so\0")


def write_vision(folder: Path, library: bytes = LINKED) -> Path:
    return write_wheel(folder, "torchvision", "HAS = 1\n", "0.1", others={"torchvision.libs/_C.so": library})


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder in which pip looks."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def test_what_was_fitted_is_whole_and_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_vision(tmp_path)
    fitted = fit_wheel(wheel)
    assert fitted.name == "torchvision-0.1+cpu-py3-none-any.whl"
    with zipfile.ZipFile(fitted) as opened:
        assert opened.testzip() is None
        assert opened.read("torchvision.py") == b"HAS = 1\n"
        assert b"libcudart" in LINKED
        assert re.search(rb"\bVersion: 0\.1\+cpu\n", opened.read("torchvision-0.1+cpu.dist-info/METADATA"))
        opened.extractall(tmp_path / "site")
    (installed,) = importlib.metadata.distributions(path=[str(tmp_path / "site")])
    assert installed.version == "0.1+cpu"
    for file in installed.files or ():
        content = file.read_binary()
        assert file.name == "RECORD" or (file.hash and file.size == len(content)), file
    first = fitted.read_bytes()
    monkeypatch.setattr("time.time", lambda: 2e9)
    os.utime(wheel, (1, 1))
    assert fit_wheel(wheel).read_bytes() == first


@pytest.mark.nightly  # the test above has what pip checks
def test_pip_installs_what_was_fitted(tmp_path: Path) -> None:
    fitted = fit_wheel(write_vision(tmp_path))
    options = ("--quiet", "--no-index", "--no-deps", "--target", str(tmp_path / "site"))
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(fitted)], check=True)
    library = (tmp_path / "site" / "torchvision.libs" / "_C.so").read_bytes()
    assert len(library) == len(LINKED)
    assert library != LINKED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("torch", "name"),
    [("1.0+cpu", "torchvision-0.1+cpu"), pytest.param("1.0", "torchvision-0.1", marks=pytest.mark.nightly)],
)
def test_they_are_fitted_to_the_torch_that_is_beside_them(tmp_path: Path, index: Path, torch: str, name: str) -> None:
    wheels = [write_vision(index), write_wheel(index, "torch", "", version=torch)]
    lines = [f"torchvision==0.1 --hash=sha256:{hash_file(wheels[0])}"]
    lines += [f"torch=={torch} --hash=sha256:{hash_file(wheels[1])}"]
    fetched = fetch_wheels(lines, tmp_path / "cache")
    (wheel,) = fetched.glob("torchvision-*.whl")
    assert wheel.name.startswith(f"{name}-py3")
    required = (fetched / "requirements.txt").read_text().splitlines()
    assert sorted(required) == sorted([lines[1], f"{name.replace('-', '==')} --hash=sha256:{hash_file(wheel)}"])


def test_what_is_for_the_processor_already_stays(tmp_path: Path) -> None:
    write_wheel(tmp_path, "torch", "", version="1.0+cpu")
    write_wheel(tmp_path, "torchvision", "", version="0.1+cpu")
    before = sorted(tmp_path.iterdir())
    assert fit_wheels(tmp_path) == {}
    assert sorted(tmp_path.iterdir()) == before


def test_what_cannot_be_fitted_is_named(tmp_path: Path) -> None:
    with pytest.raises(WheelhouseError, match=r"_C\.so of torchvision-0\.1.* cannot be fitted to PyTorch: it is cut"):
        fit_wheel(write_vision(tmp_path, LINKED[:300]))


@pytest.mark.slow
def test_what_is_beside_this_interpreter_s_torch_is_fetched(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = {"torch": "1.0+cpu", "torchaudio": "0.1+cpu", "torchvision": "0.1"}
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    write_vision(index)
    (fitted,) = fetch_cpu_only_wheels(tmp_path / "wheels")
    assert fitted.name == "torchvision-0.1+cpu-py3-none-any.whl"
    versions["torch"] = "1.0"
    assert fetch_cpu_only_wheels(tmp_path / "others") == []
