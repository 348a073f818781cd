"""Replicated content of a state folder, and folders that a replica replaces."""

from pathlib import Path

import pytest

from emulator.state.replica.folder import clear, find_files, is_empty, is_path, set_aside


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


@pytest.mark.parametrize("path", ["../x", "a/../x", "/etc/passwd", "", "a//b", ".ssh/x", "a/.b", "a/b/c/d/e/f", "a\n"])
def test_a_path_that_leads_elsewhere_is_none(path: str) -> None:
    assert not is_path(path)


@pytest.mark.parametrize("path", ["jobs.sqlite-wal", "moto/sqs/123456789012/us-east-1.7.state", "tls/trusted/ca.pem"])
def test_a_path_of_a_state_folder_is_one(path: str) -> None:
    assert is_path(path)


def test_what_is_half_written_or_of_one_process_is_not_copied(tmp_path: Path) -> None:
    fill(tmp_path, "keys.json", "emulator.json", "moto/sqs/1/us-east-1.partial", "moto/sqs/1/us-east-1.2.state")
    assert {str(path.relative_to(tmp_path)) for path in find_files(tmp_path)} == {
        "keys.json",
        "moto/sqs/1/us-east-1.2.state",
    }


def test_what_another_state_replaces_is_set_aside_or_removed(tmp_path: Path) -> None:
    fill(tmp_path, "jobs.sqlite", "s3/contents/ab/c", "keys.json", "emulator.lock", "jobs/a-1/file")
    assert not is_empty(tmp_path)
    aside = set_aside(tmp_path)
    assert is_empty(tmp_path)
    assert sorted(path.name for path in aside.iterdir()) == ["jobs", "jobs.sqlite", "keys.json", "s3"]
    fill(tmp_path, "keys.json")
    clear(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["emulator.lock", "replaced"]
