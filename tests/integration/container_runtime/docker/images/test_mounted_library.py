"""Tests of the smdebug that is mounted into images of the user's own."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import crc32c
import pytest

from container_runtime.docker.images.images_in_place import TARGET, ImagesInPlace
from container_runtime.docker.images.mounted_library.crc32c import crc32c as substitute
from container_runtime.runtime import ContainerStartError


@pytest.fixture
def library(tmp_path: Path) -> Path:
    mount = ImagesInPlace(library=tmp_path / "library").write_library()
    assert mount is not None
    assert (mount.target, mount.read_only) == (TARGET, True)
    return mount.source


def run(library: Path, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": os.defpath, "PYTHONPATH": f"{library}{os.pathsep}{library.parent}", **environment}
    # Without this interpreter's own packages, some of which are ours.
    command = [sys.executable, "-c", script]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=400, check=False)


def test_python_starts_the_library_and_the_images_own_sitecustomize(library: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.flags_of_the_image = 1\n")
    config = tmp_path / "debughookconfig.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    script = (
        "import sys, smdebug; print(sys.flags_of_the_image, 'smdebug.autoload' in sys.modules, smdebug.__file__);"
        "print(sys.path[-1])"
    )
    done = run(library, script, SMDEBUG_CONFIG_FILE_PATH=str(config))
    assert (done.returncode, done.stderr) == (0, "")
    started, last = done.stdout.splitlines()
    assert started == f"1 True {library / 'smdebug/__init__.py'}"
    assert last == str(library / "fallbacks"), "packages of the image come first"
    without = run(library, "import sys; print('smdebug.autoload' in sys.modules)")
    assert (without.stdout, without.stderr) == ("False\n", "")


def test_a_library_that_is_broken_leaves_the_program_alone(library: Path) -> None:
    (library / "smdebug_autoload.pth").write_text("raise ValueError('broken')")
    done = run(library, "print('trains')")
    assert done.stdout == "trains\n"
    assert done.stderr == "smdebug: start_library failed: ValueError: broken\n"


def test_an_older_python_trains_without_it(library: Path) -> None:
    start = f"import sys; sys.version_info = (3, 9, 1); sys.path.insert(0, {str(library)!r}); import sitecustomize; "
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"{start} print({str(library)!r} in sys.path)"],
        env={"PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("False\n", "")


@pytest.mark.slow
def test_written_twice_it_is_the_same_and_unwritable_it_is_reported(library: Path, tmp_path: Path) -> None:
    def read() -> dict[Path, tuple[int, bytes]]:
        return {path: (path.stat().st_ino, path.read_bytes()) for path in library.rglob("*") if path.is_file()}

    before = read()
    changed = library / "sitecustomize.py"
    with changed.open("ab+") as imported:
        imported.write(b"# of an earlier version")
        imported.flush()
        ImagesInPlace(library=library).write_library()
        imported.seek(0)
        assert imported.read() == before[changed][1] + b"# of an earlier version", "who reads it has it as it was"
    after = read()
    assert after.pop(changed)[1] == before.pop(changed)[1]
    assert after == before, "these were not written again"
    assert ImagesInPlace().write_library() is None
    (tmp_path / "file").write_text("")
    with pytest.raises(ContainerStartError, match="cannot be written"):
        ImagesInPlace(library=tmp_path / "file" / "library").write_library()


@pytest.mark.parametrize("size", [0, 1, 1023, 16 * 1024 - 1, 16 * 1024, 100_003])
def test_the_substitute_of_crc32c_counts_the_same(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert substitute(data) == crc32c.crc32c(data)
    assert substitute(memoryview(data), 12345) == crc32c.crc32c(data, 12345)
