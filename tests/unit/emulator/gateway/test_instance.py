from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from emulator.exceptions import StartupError
from emulator.gateway import instance as instance_module
from emulator.gateway.instance import Instance, InstanceRecord, find_instance, is_free, wait_until_free

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO


def test_an_instance_is_found_while_it_runs(tmp_path: Path) -> None:
    state = tmp_path / "new" / "state"
    assert find_instance(state) is None
    instance = Instance(state)
    assert find_instance(state) is None, "it has not announced itself yet"
    instance.announce("http://127.0.0.1:1", "us-east-1")
    assert find_instance(state) == InstanceRecord(os.getpid(), "http://127.0.0.1:1", "us-east-1")
    assert not wait_until_free(state, 0.0)
    instance.close()
    assert find_instance(state) is None
    assert wait_until_free(state, 0.0)


def test_a_folder_has_one_instance(tmp_path: Path) -> None:
    instance = Instance(tmp_path)
    with pytest.raises(StartupError, match=r"Another emulator is using the state folder .*--state-dir"):
        Instance(tmp_path)
    instance.close()
    Instance(tmp_path).close()


def test_a_look_at_the_folder_keeps_no_emulator_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    real = instance_module._try_lock

    def look_first(lock: TextIO) -> bool:
        """As `is_free` of another process does: it takes the lock, and gives it back."""
        nonlocal looks
        looks += 1
        if looks > 2:
            return real(lock)
        with (tmp_path / "emulator.lock").open("a") as other:
            assert real(other)
            return real(lock)

    monkeypatch.setattr(instance_module, "_try_lock", look_first)
    Instance(tmp_path).close()
    assert looks == 3


def test_what_a_killed_process_left_is_not_an_instance(tmp_path: Path) -> None:
    (tmp_path / "emulator.json").write_text('{"pid": 1, "endpoint_url": "x", "region": "y"}')
    assert is_free(tmp_path)
    assert find_instance(tmp_path) is None


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match=r"cannot be written .*--state-dir"):
        Instance(tmp_path / "file" / "state")
