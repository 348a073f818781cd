"""Tests of the paths that an engine has for a container's folders."""

from pathlib import Path, PurePosixPath

import pytest

from container_runtime.docker.own_container import check_mounted_folder, find_engine_path

MOUNTS = [
    {"Source": "/var/lib/docker/volumes/state/_data", "Destination": "/state"},
    {"Source": "/srv/jobs", "Destination": "/state/jobs"},
    {"Source": "/srv/same", "Destination": "/srv/same"},
]


@pytest.mark.parametrize(
    ("folder", "there"),
    [
        ("/state/emulator", "/var/lib/docker/volumes/state/_data/emulator"),
        ("/state/jobs", "/srv/jobs"),
        ("/state/jobs/1", "/srv/jobs/1"),
        ("/srv/same/state", "/srv/same/state"),
        ("/statement", None),
    ],
)
def test_the_nearest_mount_counts(folder: str, there: str | None) -> None:
    assert find_engine_path(Path(folder), MOUNTS) == (there and PurePosixPath(there))


def test_no_engine_is_asked_outside_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    check_mounted_folder(Path("/state"), "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw")
