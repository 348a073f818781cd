"""Tests of the placeholders for GPU libraries, as the dynamic linker loads them."""

import ctypes
import os
import platform
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from container_runtime.images.absent_libraries import NO_DEVICE, build_library, build_placeholders
from container_runtime.images.lock_files import PLACEHOLDER_MARK
from container_runtime.images.shared_objects import read_imports
from container_runtime.images.wheelhouse import fetch_wheels
from container_runtime.runtime import WheelhouseError
from tests.small_wheel import write_wheel
from tests.unit.container_runtime.images.small_shared_object import GONE, write_shared_object
from tests.unit.container_runtime.images.test_cpu_wheels import hash_file

# Of the length of the name that it takes the place of.
LIBRARY = "libcudart.so"
LINKED = write_shared_object().replace(GONE.encode() + b"\0", LIBRARY.encode() + b"\0")
loads_it = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="loads an object for Linux on x86-64"
)


def write_torch(folder: Path, library: bytes = LINKED) -> Path:
    return write_wheel(folder, "torch", "HAS = 1\n", "2.0", others={"torch/lib/libtorch_cuda.so": library})


@loads_it
@pytest.mark.parametrize("mode", [os.RTLD_NOW, os.RTLD_LAZY], ids=["now", "lazy"])
def test_functions_fail_and_texts_are_texts(tmp_path: Path, mode: int) -> None:
    path = tmp_path / LIBRARY
    names = {f"cudaFunction{number}": "libcudart.so.12" for number in range(300)}
    path.write_bytes(build_library(LIBRARY, {**names, "cudaGetErrorString": "libcudart.so.12", "ncclInit": None}))
    loaded = ctypes.CDLL(str(path), mode)
    assert {getattr(loaded, name)() for name in (*names, "ncclInit")} == {NO_DEVICE}
    loaded.cudaGetErrorString.restype = ctypes.c_char_p
    assert loaded.cudaGetErrorString(NO_DEVICE) == b"no GPU here"
    assert not hasattr(loaded, "cudaOther")


@loads_it
def test_the_linker_finds_symbols_by_their_versions_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / LIBRARY).write_bytes(build_library(LIBRARY, {"gone_start": "GONE_1", "gone_place": None}))
    (tmp_path / "linked.so").write_bytes(LINKED)
    program = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).call_gone())"
    ran = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "linked.so")],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout.strip(), ran.stderr) == (str(NO_DEVICE), "")


def test_only_what_a_wheel_does_not_bring_gets_a_placeholder(tmp_path: Path) -> None:
    other = LINKED.replace(LIBRARY.encode() + b"\0", b"libother1.so\0")
    assert list(build_placeholders([write_torch(tmp_path)])) == [LIBRARY]
    assert build_placeholders([write_torch(tmp_path, other)]) == {}


def test_imports_are_read() -> None:
    found = read_imports(bytearray(LINKED))
    assert found.libraries == {"libc.so.6", LIBRARY}
    assert found.versioned == {"libc.so.6": {"getpid": "GLIBC_2.2.5"}, LIBRARY: {"gone_start": "GONE_1"}}
    assert found.unversioned == {"gone_place"}
    assert found.defined == {"call_pid", "call_gone", "find_gone_place"}


@pytest.mark.parametrize("content", [b"", b"text", LINKED[:300]], ids=["empty", "text", "cut"])
def test_a_damaged_library_is_named(tmp_path: Path, content: bytes) -> None:
    wheel = write_torch(tmp_path, content)
    with pytest.raises(WheelhouseError, match=r"torch/lib/libtorch_cuda\.so of torch-2\.0.* cannot be read"):
        build_placeholders([wheel])


@pytest.mark.slow
def test_wheels_of_placeholders_are_in_place_of_the_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "index"
    index.mkdir()
    wheel = write_torch(index)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    lines = [f"torch==2.0 --hash=sha256:{hash_file(wheel)}"]
    lines += [f"{name}{PLACEHOLDER_MARK}" for name in ("nvidia-cuda-runtime-cu12==12.1", "triton==2.3.1")]
    fetched = fetch_wheels(lines, tmp_path / "cache")
    first, second = fetched.glob("nvidia_cuda_runtime_cu12-12.1+cpu-*.whl"), fetched.glob("triton-2.3.1+cpu-*.whl")
    with zipfile.ZipFile(next(first)) as of_first, zipfile.ZipFile(next(second)) as of_second:
        assert of_first.read(f"torch/lib/{LIBRARY}").startswith(b"\x7fELF")
        assert [name for name in of_second.namelist() if ".dist-info/" not in name] == []
    installed = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--no-index"]
    command += ["--find-links", str(fetched), "--target", str(installed), "-r", str(fetched / "requirements.txt")]
    subprocess.run(command, check=True)
    assert (installed / "torch" / "lib" / LIBRARY).is_file()
    assert next(installed.glob("nvidia_cuda_runtime_cu12-*.dist-info")).name.endswith("12.1+cpu.dist-info")
