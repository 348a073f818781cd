"""Tests of shared objects without their libraries: they load and still work."""

import ctypes
import os
import platform
import re
import sys
from pathlib import Path

import pytest

from container_runtime.images.shared_objects import unlink_libraries
from container_runtime.runtime import WheelhouseError
from tests.unit.container_runtime.images.small_shared_object import GONE, write_shared_object

LIBRARIES, NAMES = re.compile(r"libgone\.so\.\d"), re.compile("gone")
loads_it = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="loads an object for Linux on x86-64"
)


def load(folder: Path, content: bytes, mode: int = os.RTLD_NOW) -> ctypes.CDLL:
    path = folder / "small.so"
    path.write_bytes(content)
    return ctypes.CDLL(str(path), mode)


@loads_it
@pytest.mark.parametrize("needed", [("libc.so.6", GONE), (GONE, "libc.so.6")], ids=["last", "first"])
@pytest.mark.parametrize("mode", [os.RTLD_NOW, os.RTLD_LAZY], ids=["now", "lazy"])
def test_it_loads_without_the_library(tmp_path: Path, needed: tuple[str, ...], mode: int) -> None:
    content = write_shared_object(needed)
    with pytest.raises(OSError, match=re.escape(GONE)):
        load(tmp_path, content)
    unlinked = unlink_libraries(content, LIBRARIES, NAMES)
    assert len(unlinked) == len(content)
    loaded = load(tmp_path, unlinked, mode)
    assert loaded.call_pid() == os.getpid()
    assert loaded.call_gone() == 0
    assert loaded.find_gone_place() == 0
    assert unlink_libraries(unlinked, LIBRARIES, NAMES) == unlinked


@loads_it
def test_a_name_that_is_not_known_to_be_of_the_library_is_still_looked_for(tmp_path: Path) -> None:
    """Only what is in the names may be missing: any other is an error as before."""
    unlinked = unlink_libraries(write_shared_object(), LIBRARIES, re.compile("something else"))
    with pytest.raises(OSError, match="undefined symbol: gone_place"):
        load(tmp_path, unlinked)


def test_what_needs_no_such_library_stays_as_it_is() -> None:
    content = write_shared_object()
    assert unlink_libraries(content, re.compile("libother.so"), NAMES) == content


def test_what_cannot_be_done_is_reported() -> None:
    content = write_shared_object()
    with pytest.raises(WheelhouseError, match="no instructions that return 0"):
        unlink_libraries(write_shared_object(with_return=False), LIBRARIES, NAMES)
    for_another_processor = content[:18] + b"\xb7\0" + content[20:]
    with pytest.raises(WheelhouseError, match="only objects for x86-64"):
        unlink_libraries(for_another_processor, LIBRARIES, NAMES)
    with pytest.raises(WheelhouseError, match="not a shared object"):
        unlink_libraries(b"INPUT(-lgone)\n", LIBRARIES, NAMES)


def test_a_damaged_object_is_refused_wherever_it_ends() -> None:
    content = write_shared_object()
    for length in range(len(content)):
        with pytest.raises(WheelhouseError):
            unlink_libraries(content[:length], LIBRARIES, NAMES)
