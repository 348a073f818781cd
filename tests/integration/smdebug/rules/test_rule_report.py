"""Tests of rule reports from separate containers."""

from pathlib import Path

import numpy as np
import pytest

from tests.integration.smdebug.rules.rule_container import build_config, start_container
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.rules.test_rule_report import read_report
from tests.unit.smdebug.runs import RunMaker


@pytest.mark.slow
def test_a_container_leaves_both_files(tmp_path: Path, storage: Storage) -> None:
    source = """
from smdebug.rules import Rule
class Mine(Rule):
    def invoke_at_step(self, step):
        value = self.base_trial.tensor("loss").value(step).item()
        self.watch("loss", step, value, 2.5, tensor="loss")
        return value > 2.5
"""
    storage.put("rules/mine.py", source.encode())
    run = RunMaker(tmp_path / "job" / "debug-output")
    run.write_steps("loss", {step: np.float32(step) for step in range(5)})
    config = build_config(tmp_path, run.out_dir, "Mine", source_s3_uri="s3://runs/rules/mine.py", start_step="1")
    process = start_container(tmp_path, config)
    output, _ = process.communicate(timeout=400)
    assert process.returncode == 0, output
    report = read_report(tmp_path / "output/rule")
    assert report["Series"] == [
        {
            "Quantity": "loss",
            "Threshold": 2.5,
            "FiresWhen": "above",
            "Steps": [1, 2, 3],
            "Values": [1.0, 2.0, 3.0],
            "Tensors": ["loss"] * 3,
            "Workers": [None] * 3,
            "Modes": ["GLOBAL"] * 3,
        }
    ]
    assert report["StepsEvaluated"] == {"First": 1, "Last": 3, "Evaluated": 3, "PassedOver": 0, "WithValues": 3}
    assert (report["Rule"], report["RuleConfigurationName"], report["Run"]) == ("Mine", "my-rule", "job")
    assert (tmp_path / "output/rule/plot.svg").is_file()


def test_an_error_is_reported_too(tmp_path: Path) -> None:
    process = start_container(tmp_path, build_config(tmp_path, str(tmp_path), "Nothing", threshold="1"))
    process.communicate(timeout=400)
    report = read_report(tmp_path / "output/rule")
    assert report["RuleEvaluationStatus"] == "Error"
    assert "There is no built-in rule 'Nothing'" in report["StatusDetails"]
    assert (report["RuleParameters"], report["Series"], report["Finding"]) == ({"threshold": "1"}, [], None)
