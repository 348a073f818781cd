"""Tests of large files in file transfers: they delay only what depends on them.

A file is under way for as long as a test wants: it is larger than what comes within minutes, and has no bytes on the
node's disk.
"""

import io
import os
import shutil
import threading
from pathlib import Path

import pytest

from container_runtime.swarm.file_transfer import carrier, files
from container_runtime.swarm.file_transfer.tree import Tree
from tests.integration.container_runtime.swarm.file_transfer.carrying import NAME, USER, Setup, holds, list_all, write
from tests.waiting import wait_until

_ENDLESS = 1 << 34
# What a disk takes, should all of them be written before ten have come.
_MOST_STEPS = 300
_LARGE = "large" * 1_000_000


@pytest.fixture(autouse=True)
def _little_between_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_WINDOW", "_MOST_WINDOW"):
        monkeypatch.setattr(carrier, name, 1 << 20)


def write_endless(setup: Setup, path: str) -> Path:
    """Write an endless file that is never seen before it has its size: an empty one would come at once."""
    made = setup.volumes / "endless"
    made.touch()
    os.truncate(made, _ENDLESS)
    endless = setup.there / path
    endless.parent.mkdir(parents=True, exist_ok=True)
    return made.rename(endless)


def list_arriving(setup: Setup) -> list[Path]:
    return list(setup.here.glob(".arriving-*"))


def begin(setup: Setup, path: str) -> Path:
    """Begin to carry, and have an endless file under way."""
    setup.make().fill(NAME, "node", setup.folders)
    endless = write_endless(setup, path)
    wait_until(lambda: list_arriving(setup) != [])
    return endless


def test_small_files_come_while_a_large_one_is_under_way(setup: Setup) -> None:
    begin(setup, "checkpoints/model.bin")
    for number in range(10):
        write(setup.there / "tensors" / "events" / str(number) / "e", str(number))
        write(setup.there / "tensors" / "index" / str(number), str(number))
        wait_until(holds(setup.here / "tensors" / "index" / str(number), str(number)))
        assert holds(setup.here / "tensors" / "events" / str(number) / "e", str(number))()
    assert len(list_arriving(setup)) == 1
    assert not (setup.here / "checkpoints" / "model.bin").exists()


def test_a_large_file_overtakes_a_larger_one(setup: Setup) -> None:
    begin(setup, "checkpoints/model.bin")
    write(setup.there / "tensors" / "events" / "0", _LARGE)
    write(setup.there / "tensors" / "index" / "0", "index")
    come = setup.here / "tensors" / "events" / "0"
    wait_until((setup.here / "tensors" / "index" / "0").exists)
    assert come.read_text() == _LARGE
    assert len(list_arriving(setup)) == 1


def test_an_index_waits_for_the_large_files_beside_it_alone(setup: Setup) -> None:
    endless = begin(setup, "tensors/events/0")
    write(setup.there / "tensors" / "index" / "0", "waits")
    write(setup.there / "other" / "index" / "0", "waits for nothing")
    write(setup.there / "tensors" / "events" / "1", "event")
    wait_until((setup.here / "other" / "index" / "0").exists)
    wait_until((setup.here / "tensors" / "events" / "1").exists)
    assert not (setup.here / "tensors" / "index" / "0").exists()
    endless.unlink()
    wait_until(holds(setup.here / "tensors" / "index" / "0", "waits"))
    assert list_arriving(setup) == []


@pytest.mark.slow
def test_a_run_that_saves_large_tensors_without_a_pause_gets_its_indexes(setup: Setup) -> None:
    begin(setup, "checkpoints/model.bin")
    enough, event = threading.Event(), "e" * (1 << 20)

    def write_steps() -> None:
        for step in range(_MOST_STEPS):
            if enough.is_set():
                return
            write(setup.there / "tensors" / "events" / str(step), event)
            write(setup.there / "tensors" / "index" / str(step), "index")

    thread = threading.Thread(target=write_steps)
    thread.start()
    seen: set[str] = set()
    try:
        while len(seen) < 10:
            for index in set((setup.here / "tensors" / "index").glob("*")):
                seen.add(index.name)
                assert (setup.here / "tensors" / "events" / index.name).stat().st_size == len(event)
    finally:
        enough.set()
        thread.join()


def test_an_index_that_is_large_comes_after_what_it_names(setup: Setup) -> None:
    endless = begin(setup, "tensors/events/0")
    write(setup.there / "tensors" / "index" / "0", _LARGE)
    write(setup.there / "later", "")
    wait_until((setup.here / "later").exists)
    assert len(list_arriving(setup)) == 1
    os.truncate(endless, 0)
    wait_until((setup.here / "tensors" / "index" / "0").exists)
    wait_until((setup.here / "tensors" / "events" / "0").exists)


def test_what_is_cut_or_removed_while_it_comes_is_never_seen(setup: Setup) -> None:
    cut = begin(setup, "folder/cut")
    os.truncate(cut, 3 << 20)
    wait_until((setup.here / "folder" / "cut").exists)
    assert (setup.here / "folder" / "cut").stat().st_size == 3 << 20
    write_endless(setup, "folder/gone")
    wait_until(lambda: list_arriving(setup) != [])
    shutil.rmtree(setup.there / "folder")
    write(setup.there / "folder", "a file in its place")
    wait_until(holds(setup.here / "folder", "a file in its place"))
    write(setup.there / "later", "")
    wait_until((setup.here / "later").exists)
    assert list_all(setup.here) == ["folder", "later"]


def test_an_end_brings_all_that_is_under_way(setup: Setup) -> None:
    carriers = setup.make()
    carriers.fill(NAME, "node", setup.folders)
    names = [b"plain", b"new\nline", b"no text \xff\xfe", b"half.tmp"]
    for name in names:
        for kind, content in (("events", _LARGE), ("index", _LARGE), ("small", "small")):
            path = setup.there / kind / os.fsdecode(name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
    carriers.finish(NAME)
    assert list_all(setup.here) == list_all(setup.there)
    for path in setup.there.glob("*/*"):
        assert (setup.here / path.relative_to(setup.there)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("size", [3 << 20, 64 << 20])
def test_an_end_brings_what_was_rewritten_while_it_was_under_way(size: int, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(bytes(16 << 20))
    volume = files._Volume(Tree(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY), USER))
    volume.is_followed = True
    out = io.BytesIO()
    changes = files._Changes([volume], out)
    changes.send(1 << 20, last=False)
    assert changes.has_more
    path.write_bytes(b"x" * size)

    changes.send(1 << 20, last=True)

    assert volume.known == volume.tree.look()
    pieces = out.getvalue().count(b"x")
    assert pieces >= size, "all of it was sent as it is now"
    changes.close()
    volume.tree.close()


def test_a_cut_connection_leaves_nothing_of_what_was_under_way(setup: Setup) -> None:
    endless = begin(setup, "model.bin")
    setup.agent.end()
    wait_until(lambda: list_arriving(setup) == [])
    os.truncate(endless, 3 << 20)
    setup.agent.start()
    wait_until((setup.here / "model.bin").exists)
    assert (setup.here / "model.bin").stat().st_size == 3 << 20


def test_what_a_killed_process_has_left_is_removed(setup: Setup) -> None:
    setup.make().fill(NAME, "node", setup.folders)
    setup.made.pop().shut()
    for name in (".arriving.tmp", ".arriving-3.tmp"):
        (setup.here / name).write_text("half")
    after = setup.make()
    after.reattach(NAME, "node", setup.folders)
    write(setup.there / "model.bin", _LARGE)
    after.finish(NAME)
    assert list_all(setup.here) == ["model.bin"]
