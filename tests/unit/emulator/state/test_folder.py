import os
from pathlib import Path
from typing import TextIO

import pytest

from container_runtime.machine import IMAGE_VARIABLE
from emulator import VERSION
from emulator.exceptions import StartupError
from emulator.state import folder as state_folder
from emulator.state.folder import (
    RunningEmulator,
    StateFolder,
    describe_unwritable,
    find_running_emulator,
    is_free,
    make_state_dir,
    remove_unused,
)


def test_an_instance_is_found_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "new" / "state"
    assert find_running_emulator(state) is None
    folder = StateFolder(state)
    with monkeypatch.context() as patched:
        patched.setattr(state_folder, "_START_SECONDS", 0)
        assert find_running_emulator(state) is None, "it has not announced itself yet"
    folder.announce("http://127.0.0.1:1", "us-east-1", "1" * 12)
    assert find_running_emulator(state) == RunningEmulator(
        os.getpid(), "http://127.0.0.1:1", "us-east-1", VERSION, "1" * 12
    )
    assert not is_free(state)
    folder.close()
    assert find_running_emulator(state) is None
    assert is_free(state)


@pytest.mark.parametrize("becomes", ["ready", "closed"])
def test_an_instance_that_is_starting_is_awaited(becomes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StateFolder(tmp_path)
    pauses = 0

    def pause(_seconds: float) -> None:
        nonlocal pauses
        pauses += 1
        if pauses == 3 and becomes == "ready":
            folder.announce("http://127.0.0.1:1", "us-east-1", "1" * 12)
        elif pauses == 3:
            folder.close()

    monkeypatch.setattr("emulator.state.folder.time.sleep", pause)
    found = find_running_emulator(tmp_path)
    assert (found is not None, pauses) == (becomes == "ready", 3)
    folder.close()


def test_a_folder_has_one_instance(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    with pytest.raises(StartupError, match=r"Another emulator is using the state folder .*--state-dir"):
        StateFolder(tmp_path)
    folder.close()
    StateFolder(tmp_path).close()


def test_a_folder_made_for_a_start_that_failed_is_removed(tmp_path: Path) -> None:
    state = tmp_path / "new" / "state"
    folder = StateFolder(state)
    (state / "keys.json").touch()
    folder.close()
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_before_a_start_that_failed_stays(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "shared" / "state")
    other = tmp_path / "shared" / "other"
    other.touch()
    folder.close()
    assert list((tmp_path / "shared").iterdir()) == [other]
    earlier = StateFolder(tmp_path / "earlier")
    earlier.announce("http://127.0.0.1:1", "us-east-1", "1" * 12)
    earlier.close()
    StateFolder(tmp_path / "earlier").close()
    assert (tmp_path / "earlier").is_dir()


def test_a_folder_that_another_start_holds_by_now_stays(tmp_path: Path) -> None:
    made = make_state_dir(tmp_path / "new" / "state")
    other = StateFolder(tmp_path / "new" / "state")
    remove_unused(made)
    assert (tmp_path / "new" / "state").is_dir()
    other.close()
    remove_unused(made)
    assert list(tmp_path.iterdir()) == []
    remove_unused([])


def test_a_look_at_the_folder_keeps_no_emulator_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    real = state_folder._try_lock

    def look_first(lock: TextIO) -> bool:
        """As `is_free` of another process does: it takes the lock, and gives it back."""
        nonlocal looks
        looks += 1
        if looks > 2:
            return real(lock)
        with (tmp_path / "emulator.lock").open("a") as other:
            assert real(other)
            return real(lock)

    monkeypatch.setattr(state_folder, "_try_lock", look_first)
    StateFolder(tmp_path).close()
    assert looks == 3


def test_what_a_killed_process_left_is_not_an_instance(tmp_path: Path) -> None:
    (tmp_path / "emulator.json").write_text('{"pid": 1, "endpoint_url": "x", "region": "y"}')
    assert is_free(tmp_path)
    assert find_running_emulator(tmp_path) is None


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match=r"cannot be written .*--state-dir"):
        StateFolder(tmp_path / "file" / "state")


def test_the_volume_of_another_user_says_with_which_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IMAGE_VARIABLE, "1")
    error = PermissionError(13, "Permission denied", str(tmp_path))
    said = describe_unwritable(tmp_path, error)
    assert said.endswith(f"start the container as its owner, with --user {tmp_path.stat().st_uid}.")
