"""Tests of the notebook display of runs and verdicts."""

from pathlib import Path

import numpy as np
import pytest

from smdebug.analysis.plots import name_run
from smdebug.rules.container.verdict import ISSUES_FOUND, Verdict
from tests.unit.smdebug.rules.builtin.judging import write_run


def test_a_run_is_shown_by_its_job_s_name(tmp_path: Path) -> None:
    trial = write_run(tmp_path / "<job>" / "debug-output", [{"loss": np.float32(1.0)}] * 3)
    shown = trial._repr_html_()
    assert "<caption>&lt;job&gt;</caption>" in shown
    assert "<td>3, 0 to 2</td>" in shown
    assert "losses (1)" in shown
    assert name_run(trial) == "<job>"
    assert name_run(write_run(tmp_path / "mine", [{"loss": np.float32(1.0)}])) == "mine"


def test_a_tensor_says_what_it_is(tmp_path: Path) -> None:
    trial = write_run(
        tmp_path / "run", [{"loss": np.float32(1.0)}, {"loss": np.float32(1.0), "once": np.zeros((2, 3))}]
    )
    assert repr(trial.tensor("loss")) == "<Tensor loss: 2 steps, 0 to 1; shape (1,), float32>"
    assert repr(trial.tensor("once")) == "<Tensor once: step 1 alone; shape (2, 3), float64>"


def test_a_tensor_whose_file_is_gone_is_shown_as_well(tmp_path: Path) -> None:
    trial = write_run(tmp_path / "run", [{"loss": np.float32(1.0)}])
    for path in (tmp_path / "run" / "events").rglob("*.tfevents"):
        path.unlink()
    assert repr(trial.tensor("loss")).startswith("<Tensor loss: ")


@pytest.mark.slow
def test_pictures_name_the_job(tmp_path: Path) -> None:
    trial = write_run(tmp_path / "job" / "debug-output", [{"loss": np.float32(1.0)}] * 3)
    assert trial.plot("loss").get_title() == "job: loss"
    assert trial.histogram("loss").get_title() == "job: loss"


def test_a_verdict_is_shown_as_text() -> None:
    shown = Verdict(ISSUES_FOUND, "a < b\n<script>", 3)._repr_html_()
    assert "IssuesFound" in shown
    assert "a &lt; b<br>&lt;script&gt;" in shown
