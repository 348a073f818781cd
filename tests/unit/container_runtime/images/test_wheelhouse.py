"""Tests of fetched wheels: what a process that was killed leaves behind."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from container_runtime.images import wheelhouse
from container_runtime.images.wheelhouse import fetch_wheels, remove_wheels

# Fetches for ever, and says when it has begun.
_PROGRAM = """
import sys, time
from pathlib import Path
from container_runtime.images import wheelhouse

def fetch(requirements, into, python):
    (into / "large.whl").write_bytes(b"wheel")
    print(into.parent, flush=True)
    time.sleep(600)

wheelhouse._fetch = fetch
wheelhouse.fetch_wheels(["slow==1"], Path(sys.argv[1]))
"""


@contextmanager
def run_fetch(cache: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Run a fetch that does not end in another process; yield the process and its folder."""
    command = [sys.executable, "-c", _PROGRAM, str(cache)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


@pytest.fixture
def _quick_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(requirements: Sequence[str], into: Path, _python: str) -> list[str]:
        (into / "small.whl").write_bytes(b"")
        return list(requirements)

    monkeypatch.setattr(wheelhouse, "_fetch", fetch)


@pytest.mark.usefixtures("_quick_fetch")
def test_the_next_fetch_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    with run_fetch(tmp_path) as (process, unfinished):
        fetched = [fetch_wheels(["one==1"], tmp_path)]
        assert (unfinished / "wheels" / "large.whl").exists(), "its process still runs"
        process.kill()
        process.wait()
        fetched.append(fetch_wheels(["two==2"], tmp_path))
    assert sorted((tmp_path / "wheels").iterdir()) == sorted(fetched)
    assert sorted(path.name for path in fetched[0].iterdir()) == ["requirements.txt", "small.whl"]


@pytest.mark.usefixtures("_quick_fetch")
def test_a_removal_that_is_interrupted_leaves_no_wheels_that_look_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = fetch_wheels(["one==1"], tmp_path)
    (fetched / "small.whl").unlink()  # what the removal below has removed

    def interrupt(_folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", interrupt)
        with pytest.raises(KeyboardInterrupt):
            remove_wheels(tmp_path)
    assert fetch_wheels(["one==1"], tmp_path) == fetched
    assert sorted(path.name for path in fetched.iterdir()) == ["requirements.txt", "small.whl"]
    assert list(fetched.parent.iterdir()) == [fetched]
    remove_wheels(tmp_path)
    assert not fetched.parent.exists()


@pytest.mark.usefixtures("_quick_fetch")
def test_a_removal_leaves_what_another_process_fetches(tmp_path: Path) -> None:
    fetched = fetch_wheels(["one==1"], tmp_path)
    (fetched.parent / "notes").touch()
    with run_fetch(tmp_path) as (_, unfinished):
        remove_wheels(tmp_path)
        assert list(fetched.parent.iterdir()) == [unfinished]
        assert (unfinished / "wheels" / "large.whl").exists()
