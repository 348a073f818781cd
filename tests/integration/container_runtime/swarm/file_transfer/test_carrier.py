"""Tests of file transfer with nodes that share no disk, in both directions."""

import io
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from container_runtime.runtime import ContainerRuntimeError
from container_runtime.swarm.file_transfer import files
from container_runtime.swarm.file_transfer.carried_folders import BEGIN_FILE, Carried
from container_runtime.swarm.file_transfer.tree import Tree
from container_runtime.swarm.file_transfer.tree_protocol import FILE, FOLDER, LINK, ProtocolError
from tests.integration.container_runtime.swarm.file_transfer.carrying import NAME, USER, Setup, holds, list_all, write
from tests.waiting import wait_until


def test_what_is_here_is_there_before_the_program_begins(setup: Setup) -> None:
    write(setup.here / "input" / "config" / "settings.json", "{}")
    (setup.here / "model").mkdir()
    script = write(setup.code / "train.sh", "true")
    script.chmod(0o755)
    (setup.code / "again.sh").symlink_to("train.sh")
    os.link(script, setup.code / "same.sh")
    setup.make().fill(NAME, "node", setup.folders)
    assert (setup.begin / BEGIN_FILE).exists()
    assert list_all(setup.there) == list_all(setup.here)
    assert (setup.there / "input" / "config" / "settings.json").read_text() == "{}"
    assert list_all(setup.code_there) == ["again.sh", "same.sh", "train.sh"]
    assert (setup.code_there / "again.sh").readlink() == Path("train.sh")
    arrived = (setup.code_there / "train.sh").stat()
    assert (arrived.st_mode & 0o777, arrived.st_mtime_ns) == (0o755, script.stat().st_mtime_ns)
    for each in (setup.there, setup.there / "model", setup.code_there / "train.sh"):
        assert (each.stat().st_uid, each.stat().st_gid) == USER


def test_what_is_written_there_comes_while_it_runs_and_at_its_end(setup: Setup) -> None:
    write(setup.here / "old", "old")
    carriers = setup.make()
    carriers.fill(NAME, "node", setup.folders)
    write(setup.there / "output" / "first", "1")
    (setup.there / "leads-out").symlink_to("/etc/passwd")
    (setup.there / "half.tmp").write_text("half")
    os.mkfifo(setup.there / "pipe")
    (setup.code_there / "unread").write_text("")
    wait_until(holds(setup.here / "output" / "first", "1"))
    write(setup.there / "output" / "first", "another")
    (setup.there / "old").unlink()
    wait_until(holds(setup.here / "output" / "first", "another"))
    wait_until(lambda: not (setup.here / "old").exists())
    assert (setup.here / "leads-out").readlink() == Path("/etc/passwd")
    assert list_all(setup.here) == ["leads-out", "output", "output/first"]
    for name in ("leads-out", "output", "output/first"):
        arrived = (setup.here / name).lstat()
        assert (arrived.st_uid, arrived.st_gid) == USER, "as where nothing is carried"
    # A thing in the place of another.
    (setup.there / "leads-out").unlink()
    write(setup.there / "leads-out" / "file", "in a folder")
    (setup.there / "output" / "first").unlink()
    (setup.there / "output").rmdir()
    (setup.there / "output").write_text("a file")
    carriers.finish(NAME)
    assert list_all(setup.here) == ["half.tmp", "leads-out", "leads-out/file", "output"]
    assert (setup.here / "output").read_text() == "a file"
    assert list_all(setup.code) == []
    (setup.there / "late").write_text("")
    carriers.finish(NAME)
    assert not (setup.here / "late").exists(), "the end is asked for once"


@pytest.mark.slow
@pytest.mark.parametrize("steps", [150, pytest.param(1000, marks=pytest.mark.nightly)])
def test_an_index_never_comes_before_what_it_names(setup: Setup, steps: int) -> None:
    carriers = setup.make()
    carriers.fill(NAME, "node", setup.folders)
    enough = threading.Event()
    written: list[str] = []

    def write_steps() -> None:
        while not enough.is_set() and len(written) < 50_000:
            step = f"{len(written):06}"
            written.append(step)
            write(setup.there / "tensors" / "events" / step / "worker.tfevents", "e" * 1000)
            write(setup.there / "tensors" / "index" / "000" / f"{step}_worker.json", "i")

    thread = threading.Thread(target=write_steps)
    thread.start()
    seen: set[str] = set()
    # Without the pauses of wait_until: between two looks a mistake would be mended.
    deadline = time.monotonic() + 180
    try:
        while len(seen) < steps:
            assert time.monotonic() < deadline, f"{len(seen)} of {len(written)} steps have come"
            for each in set((setup.here / "tensors" / "index").glob("*/*.json")):
                seen.add(each.name[:6])
                assert (setup.here / "tensors" / "events" / each.name[:6] / "worker.tfevents").exists()
    finally:
        enough.set()
        thread.join()
    carriers.finish(NAME)
    assert len(list((setup.here / "tensors").rglob("*.json"))) == len(written)


def test_a_cut_connection_resumes_where_it_was(setup: Setup) -> None:
    carriers = setup.make()
    carriers.fill(NAME, "node", setup.folders)
    first = write(setup.there / "first", "1")
    wait_until(holds(setup.here / "first", "1"))
    arrived = (setup.here / "first").stat()
    setup.agent.end()
    write(setup.there / "second", "2")
    first.with_name("gone").touch()
    first.with_name("gone").unlink()
    setup.agent.start()
    wait_until(holds(setup.here / "second", "2"))
    assert (setup.here / "first").stat() == arrived, "it came a second time"


def test_another_process_continues(setup: Setup) -> None:
    before = setup.make()
    before.fill(NAME, "node", setup.folders)
    write(setup.there / "first", "1")
    wait_until(holds(setup.here / "first", "1"))
    before.shut()
    arrived = (setup.here / "first").stat()
    write(setup.there / "second", "2")
    after = setup.make()
    assert after.was_filled(NAME, "node", setup.folders)
    after.reattach(NAME, "node", setup.folders)
    after.finish(NAME)
    assert (setup.here / "second").read_text() == "2"
    assert (setup.here / "first").stat() == arrived, "it came a second time"


def test_one_that_was_never_filled_is_known(setup: Setup) -> None:
    carriers = setup.make()
    assert not carriers.was_filled(NAME, "node", setup.folders)
    setup.here.rmdir()
    carriers.reattach(NAME, "node", setup.folders)
    carriers.finish(NAME)


def test_what_the_emulator_changes_later_arrives(setup: Setup) -> None:
    configuration = write(setup.here / "input" / "config" / "profilerconfig.json", "{}")
    carriers = setup.make()
    carriers.fill(NAME, "node", setup.folders)
    (setup.here / "go").touch()
    write(configuration, '{"changed": 1}')
    wait_until((setup.there / "go").exists)
    wait_until(holds(setup.there / "input" / "config" / "profilerconfig.json", '{"changed": 1}'))
    carriers.finish(NAME)
    assert configuration.read_text() == '{"changed": 1}'


def test_a_large_file_that_grows_comes_again_when_it_rests(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    carriers = setup.make()
    carriers.fill(NAME, "node", setup.folders)
    model, small = setup.there / "model.bin", setup.there / "small"
    model.write_bytes(b"a" * (3 << 20))
    come = setup.here / "model.bin"
    wait_until(lambda: come.exists() and come.stat().st_size == 3 << 20)
    sizes = set()
    with monkeypatch.context() as patched:
        patched.setattr(files, "_REST_NS", 3600 * 10**9)  # on a busy machine, a round may take longer than a second
        for number in range(20):
            with model.open("ab") as file:
                file.write(b"b" * 1000)
            write(small, str(number))
            wait_until(holds(setup.here / "small", str(number)))
            sizes.add(come.stat().st_size)
    assert len(sizes) <= 2
    wait_until(lambda: come.read_bytes() == model.read_bytes())


def test_what_the_node_cannot_keep_is_reported(setup: Setup) -> None:
    missing = [each._replace(volume=f"missing-{each.volume}") for each in setup.folders]
    with pytest.raises(ContainerRuntimeError, match=r"cannot keep a container's files: FileNotFoundError"):
        setup.make().fill(NAME, "node", missing)
    outside = [Carried("../volumes/x", str(setup.here), 0o755, comes_back=True)]
    with pytest.raises(ContainerRuntimeError, match=r"No name of a volume"):
        setup.make().fill(NAME, "node", outside)


def test_an_agent_that_ends_leaves_no_thread_behind(setup: Setup) -> None:
    missing = [each._replace(volume=f"missing-{each.volume}") for each in setup.folders]
    setup.make().fill(NAME, "node", setup.folders)
    with pytest.raises(ContainerRuntimeError):
        setup.make().fill(NAME, "node", missing)
    setup.agent.end()
    wait_until(lambda: not any(each.name.startswith("files_") for each in threading.enumerate()))
    setup.agent.start()


def test_what_is_lost_is_reported(setup: Setup) -> None:
    carriers = setup.make()
    carriers.fill(NAME, "node", setup.folders)
    write(setup.there / "first", "1")
    wait_until(holds(setup.here / "first", "1"))
    setup.agent.end()
    told = carriers.lose(NAME)
    assert "UTC; what it wrote after that is lost." in told
    assert carriers.lose(NAME) == told, "who waits and who reads the log may ask at the same time"
    carriers.close(NAME)
    assert carriers.lose(NAME) == ""
    setup.agent.start()


def open_tree(folder: Path) -> Tree:
    return Tree(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))


@pytest.mark.parametrize(
    "line",
    [
        {"path": "../out"},
        {"path": "/out"},
        {"path": "a/../../out"},
        {"path": ""},
        {"path": "a//b"},
        {"path": "."},
        {"path": "a\0b"},
        {"path": 3},
        {"path": "/".join("a" * 200)},
        {"path": ".arriving.tmp"},
        {"path": ".arriving-1.tmp"},
        {"state": ["pipe"]},
        {"state": ["device", 1, 2]},
        {"state": [FILE, -1, 0]},
        {"state": [FILE, 1, 1 << 80]},
        {"state": [LINK, ""]},
        {"state": "file"},
        {"state": None},
        {"mode": "rwx"},
    ],
)
def test_what_is_not_a_part_of_a_folder_is_refused(tmp_path: Path, line: dict[str, Any]) -> None:
    (tmp_path / "in").mkdir()
    tree = open_tree(tmp_path / "in")
    with pytest.raises(ProtocolError):
        tree.receive(io.BytesIO(b"x+"), {"path": "a", "state": [FILE, 1, 0], "mode": 0o644, **line})
    tree.close()
    assert list_all(tmp_path) == ["in"]


def test_nothing_is_written_or_removed_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "kept").write_text("kept")
    (tmp_path / "in").mkdir()
    tree = open_tree(tmp_path / "in")
    link = {"path": "a", "state": [LINK, str(tmp_path / "out")], "mode": 0o777}
    file = {"path": "a/kept", "state": [FILE, 1, 0], "mode": 0o4755}
    tree.receive(io.BytesIO(), link)
    tree.remove("a/kept")
    tree.receive(io.BytesIO(b"x+"), file)
    tree.receive(io.BytesIO(), {**link, "path": "b", "state": [LINK, str(tmp_path / "out" / "kept")]})
    tree.receive(io.BytesIO(b"x+"), {**file, "path": "b"})
    assert tree.look() == {"a": (FOLDER,), "a/kept": (FILE, 1, 0), "b": (FILE, 1, 0)}
    tree.close()
    assert (tmp_path / "in" / "b").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "out" / "kept").read_text() == "kept"


def test_half_a_file_is_none(tmp_path: Path) -> None:
    tree = open_tree(tmp_path)
    line = {"path": "a", "state": [FILE, 4, 0], "mode": 0o644}
    with pytest.raises(ConnectionError):
        tree.receive(io.BytesIO(b"xx"), line)
    with pytest.raises(ConnectionError):
        tree.receive(io.BytesIO(b"xxxx"), line)
    assert tree.receive(io.BytesIO(b"xxxx-"), line) is None, "its sender says that it was cut meanwhile"
    assert tree.look() == {}
    assert tree.receive(io.BytesIO(b"xxxx+"), line) == ("a", (FILE, 4, 0))
    tree.close()
