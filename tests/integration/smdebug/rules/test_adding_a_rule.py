"""A built-in rule added by one file, as docs/architecture.md says."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[4] / "smdebug"
RULE = '''"""TooLarge: tensors whose largest value is above a threshold."""

from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.parameters import number
from smdebug.rules.watched_quantity import Limit


class TooLarge(BuiltInRule):
    """Fires at a step where the largest value of some tensor is above threshold."""

    parameters = (*TENSOR_CHOICE, number("threshold", 1.0))
    inspects = "tensors chosen by collection_names or tensor_regex"
    needs = "its values were not saved"
    frameworks = ALL_FRAMEWORKS
    advice = ("Look at the learning rate.", "Clip the tensor.", "Choose a higher threshold.")

    def _prepare(self):
        self.require_choice()
        self._limits = [Limit("max", self.values["threshold"], "above")]

    def invoke_at_step(self, step):
        return self.inspect(self.tensors.saved(self.chosen_names(step), step), self._judge)

    def _judge(self, saved):
        values = self.tensors.read(saved)
        if values is None:
            return None
        return self.weigh(saved, float(values.max()), self._limits, lambda limit: "too large")
'''


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the package with one file more and nothing else changed."""
    # With what is compiled, but not with what another process compiles now.
    shutil.copytree(PACKAGE, tmp_path / "smdebug", ignore=shutil.ignore_patterns("*.pyc.*"))
    (tmp_path / "smdebug" / "rules" / "builtin" / "too_large.py").write_text(RULE, encoding="utf-8")
    return tmp_path


def run_rules(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "smdebug.rules", *arguments]
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.slow
def test_a_new_file_is_a_rule_of_the_command_line_and_of_the_page(checkout: Path, recorded_runs: Path) -> None:
    section = run_rules(checkout, "docs").stdout.partition("\n## TooLarge\n")[2].partition("\n## ")[0]
    assert "threshold" in section
    run = str(recorded_runs / "pt_save_all" / "run")
    options = ("--trial", run, "--param", "tensor_regex=.*", "--param", "threshold=-1000")
    judged = run_rules(checkout, "run", "TooLarge", *options)
    assert judged.returncode == 2, judged.stderr
    assert "\nIssuesFound: " in f"\n{judged.stdout}"
