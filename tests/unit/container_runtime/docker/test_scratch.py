"""Tests of the writable folders of a container."""

import os
from pathlib import Path

from container_runtime.docker.scratch import list_scratch_mounts, prepare_folders
from container_runtime.spec import ContainerSpec


def test_folders_are_filled_again_for_a_start_after_one_that_failed(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    spec = ContainerSpec("one", "own", scratch=scratch)
    list_scratch_mounts(scratch, has_environment=True)
    for _ in range(2):
        prepare_folders(spec, "home = /usr/bin\n", (os.getuid(), os.getgid()))
    assert (scratch / "own-packages" / "pyvenv.cfg").read_text() == "home = /usr/bin\n"
    assert (scratch / "own-packages" / "bin" / "python").is_symlink()
