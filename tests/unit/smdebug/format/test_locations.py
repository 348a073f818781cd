"""Tests of paths for code that was written for smdebug."""

import pytest

from smdebug.format.locations import TensorFileLocation


@pytest.mark.parametrize(
    ("run", "folder"), [("", "events"), ("/run", "/run/events"), ("s3://b/runX/", "s3://b/runX/events")]
)
def test_event_files_are_below_the_run(run: str, folder: str) -> None:
    assert TensorFileLocation.get_dir(run) == folder
    assert TensorFileLocation.get_step_dir_path(run, 7) == f"{folder}/000000000007"
    assert TensorFileLocation.get_dir() == "events"
