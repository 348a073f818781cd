"""Tests of a custom rule's requirements.txt, installed without an index.

A wheel beside it provides the package.
"""

import io
import json
import zipfile
from pathlib import Path

import pytest

from tests.integration.smdebug.rules.rule_container import build_config, start_container
from tests.unit.smdebug.object_storage import Storage
from tests.unit.smdebug.runs import RunMaker

RULE = b"""
import strict_limits
from smdebug.rules import Rule
class Mine(Rule):
    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").value(step).item() > strict_limits.LIMIT
"""


def build_wheel() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("strict_limits.py", "LIMIT = 1.5\n")
        info = "strict_limits-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: strict-limits\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return content.getvalue()


def judge(tmp_path: Path, source: str) -> tuple[dict[str, object], str]:
    run = RunMaker(tmp_path / "job")
    run.write_steps("loss", {0: 1.0, 1: 2.0})
    run.end()
    config = build_config(tmp_path, run.out_dir, "Mine", source_s3_uri=source)
    process = start_container(tmp_path, config, PIP_NO_INDEX="1", SMDEBUG_WARNINGS_PATH=str(tmp_path / "warnings"))
    output, _ = process.communicate(timeout=400)
    return json.loads((tmp_path / "output/verdict.json").read_text()), output


@pytest.mark.slow
def test_a_package_from_beside_the_rule(tmp_path: Path, storage: Storage) -> None:
    storage.put("rules/mine.py", RULE)
    storage.put("rules/strict_limits-1.0-py3-none-any.whl", build_wheel())
    storage.put("rules/requirements.txt", b"./strict_limits-1.0-py3-none-any.whl\n")
    verdict, output = judge(tmp_path, "s3://runs/rules")
    assert (verdict["RuleEvaluationStatus"], verdict["Step"]) == ("IssuesFound", 1), output
    assert "Installing the rule's requirements.txt" in output


@pytest.mark.slow
def test_requirements_beside_a_single_file_that_cannot_be_met(tmp_path: Path, storage: Storage) -> None:
    storage.put("rules/mine.py", RULE)
    storage.put("rules/requirements.txt", b"a-package-that-nobody-made==1.0\n")
    verdict, _ = judge(tmp_path, "s3://runs/rules/mine.py")
    assert verdict["RuleEvaluationStatus"] == "Error"
    details = str(verdict["StatusDetails"])
    assert details.startswith("SMDebugError: The rule's requirements.txt could not be installed. pip said:")
    assert "No matching distribution found for a-package-that-nobody-made==1.0" in details
    warning = json.loads((tmp_path / "warnings").read_text())
    assert warning["Code"] == "RequirementsNotInstalled"
    assert "a-package-that-nobody-made" in warning["Text"]


@pytest.mark.slow
def test_several_files(tmp_path: Path, storage: Storage) -> None:
    storage.put("a/mine.py", RULE)
    storage.put("b/strict_limits.py", b"LIMIT = 0.5\n")
    verdict, output = judge(tmp_path, "s3://runs/a/mine.py, s3://runs/b/strict_limits.py")
    assert (verdict["RuleEvaluationStatus"], verdict["Step"]) == ("IssuesFound", 0), output
    assert "Installing" not in output
