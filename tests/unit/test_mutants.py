"""Tests of what `make mutants` changes, draws and prints."""

import json
import os
import signal
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from tests import mutants
from tests.mutant_tests import MEASURED, NOTICED, order
from tests.mutants import CHECKOUT, SUBJECTS, build_row, draw, end_left_over

CHANGES = [f"smdebug.rules.x_a__mutmut_{number}" for number in range(9)]


class Item(NamedTuple):
    nodeid: str
    path: Path


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """What becomes of each change, in place of runs of mutmut."""
    states: dict[str, str] = dict.fromkeys(CHANGES, "not checked")
    monkeypatch.setattr(mutants, "COPIES", tmp_path)
    monkeypatch.setattr(mutants, "copy_checkout", lambda *_: tmp_path)
    monkeypatch.setattr(mutants, "list_changes", lambda _: CHANGES)
    monkeypatch.setattr(
        mutants, "run_tests", lambda _name, _copy, chosen, _workers: {**states, **dict.fromkeys(chosen, "killed")}
    )
    monkeypatch.setattr(mutants, "show_survivors", lambda *_: [])
    return states


@pytest.mark.parametrize("name", SUBJECTS)
def test_each_subject_and_its_tests_exist(name: str) -> None:
    subject = SUBJECTS[name]
    missing = [path for path in (*subject.paths, *subject.tests) if not list(CHECKOUT.glob(path))]
    assert missing == []


def test_changes_that_were_not_checked_are_an_error(states: dict[str, str]) -> None:
    done = CliRunner().invoke(mutants.main, ["rules"])
    assert done.exit_code == 1
    assert "No change of rules was checked: its tests fail" in done.output


def test_a_sample_says_how_many_of_how_many_and_how_to_draw_it_again(states: dict[str, str]) -> None:
    done = CliRunner().invoke(mutants.main, ["rules", "--sample", "4", "--seed", "7"])
    assert done.exit_code == 0, done.output
    assert "rules: tested 4 of 9 changes (drawn with --seed 7)." in done.output
    assert "| `rules` | 4 of 9 | 4 | 0 | 0 |" in done.output


def test_a_seed_draws_the_same_changes_again() -> None:
    assert draw(CHANGES, 4, 7) == draw(CHANGES[::-1], 4, 7)
    assert draw(CHANGES, 4, 7) != draw(CHANGES, 4, 8)
    assert len(set(draw(CHANGES, 4, 7))) == 4
    assert draw(CHANGES, None, 7) == draw(CHANGES, 9, 7) == CHANGES


def test_a_row_counts_what_was_noticed_and_what_not() -> None:
    ends = ("killed", "timeout", "survived", "survived", "no tests")
    assert build_row("rules", 70, dict(zip(CHANGES, ends, strict=False))) == "| `rules` | 5 of 70 | 2 | 2 | 1 |"


def test_the_tests_of_make_test_that_need_no_engine_notice_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(mutants, "COPIES", tmp_path)
    monkeypatch.setattr(mutants, "list_tracked", list)
    copy = mutants.copy_checkout("publisher", SUBJECTS["publisher"], 30)
    settings = ConfigParser(interpolation=None)
    settings.read(copy / "setup.cfg")
    arguments = settings["mutmut"]["pytest_add_cli_args"].splitlines()
    assert "--timeout=30" in arguments
    assert arguments[-1] == "not nightly and not versions and not docker and not gpu"
    assert settings["mutmut"]["only_mutate"].split() == list(SUBJECTS["publisher"].paths)


def test_tests_come_first_that_notice_much_in_little_time(tmp_path: Path) -> None:
    seconds = {"a.py::slow": 4.0, "a.py::quick": 2.0, "b.py::only": 1.0}
    items: list[Any] = [Item(name, Path(name.split("::")[0])) for name in seconds]
    (tmp_path / MEASURED).write_text(json.dumps({"duration_by_test": seconds}))
    assert [item.nodeid for item in order(items, tmp_path)] == ["b.py::only", "a.py::quick", "a.py::slow"]
    (tmp_path / NOTICED).write_text("change\ta.py::slow\n" * 9)
    assert [item.nodeid for item in order(items, tmp_path)] == ["a.py::slow", "a.py::quick", "b.py::only"]


def test_processes_of_the_folder_of_a_run_end_with_it(tmp_path: Path) -> None:
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    left = [
        subprocess.Popen([*sleep, str(tmp_path / "job")]),
        subprocess.Popen(sleep, env={**os.environ, "SAGEMAKER_BASE_DIR": f"{tmp_path}/ml"}),
    ]
    other = subprocess.Popen(sleep)
    try:
        end_left_over(str(tmp_path))
        assert [each.wait(timeout=400) for each in left] == [-signal.SIGKILL] * 2
        assert other.poll() is None
    finally:
        for each in (*left, other):
            each.kill()
            each.wait()
