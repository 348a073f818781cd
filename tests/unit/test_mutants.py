"""Tests of what `make mutants` changes."""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import mutants
from tests.mutants import CHECKOUT, SUBJECTS


@pytest.mark.parametrize("name", SUBJECTS)
def test_each_subject_and_its_tests_exist(name: str) -> None:
    subject = SUBJECTS[name]
    missing = [path for path in (*subject.paths, *subject.tests) if not list(CHECKOUT.glob(path))]
    assert missing == []


def test_changes_that_were_not_checked_are_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    listed = subprocess.CompletedProcess([], 1, "    smdebug.rules.x_a__mutmut_1: not checked\n")
    monkeypatch.setattr(mutants, "copy_checkout", lambda *_: tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: listed)
    done = CliRunner().invoke(mutants.main, ["rules"])
    assert done.exit_code == 1
    assert "No change of rules was checked: its tests fail" in done.output
