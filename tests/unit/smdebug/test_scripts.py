"""Tests of scripts that are forked from an interpreter."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.smdebug.scripts import ForkingInterpreter


@pytest.fixture(scope="module")
def interpreter() -> Iterator[ForkingInterpreter]:
    interpreter = ForkingInterpreter("json")
    yield interpreter
    interpreter.close()


def test_a_fork_ends_as_a_new_interpreter_would(interpreter: ForkingInterpreter, tmp_path: Path) -> None:
    run = interpreter.build_script_runner(tmp_path)
    done = run("import sys, os\nprint(__name__, sys.argv[1:], dict(os.environ)['MINE'])", "a b", MINE="7")
    assert (done.returncode, done.stdout, done.stderr) == (0, "__main__ ['a b'] 7\n", "")
    done = run("import atexit, sys\natexit.register(print, 'at the end')\nsys.exit('said')")
    assert (done.returncode, done.stdout, done.stderr) == (1, "at the end\n", "said\n")
    done = run("print(json)")
    assert done.returncode == 1
    assert "NameError" in done.stderr
    assert run("import os\nos.kill(os.getpid(), 9)").returncode == -9


def test_a_script_without_end_is_killed_and_the_next_one_runs(interpreter: ForkingInterpreter, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="ended with -9, at the latest after 1 s"):
        interpreter.build_script_runner(tmp_path, seconds=1)("import time\ntime.sleep(600)")
    assert interpreter.build_script_runner(tmp_path)("print(1)").stdout == "1\n"


def test_an_interpreter_that_was_killed_is_replaced(interpreter: ForkingInterpreter, tmp_path: Path) -> None:
    run = interpreter.build_script_runner(tmp_path)
    with pytest.raises(AssertionError, match="ended with -9"):
        run("import os\nos.kill(os.getppid(), 9)")
    assert run("print(1)").stdout == "1\n"
