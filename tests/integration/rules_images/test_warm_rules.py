"""Rules that are forked from a warm interpreter, beside rules in new ones."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from container_runtime.process import warm_interpreters
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.warm_interpreters import WarmOptions
from container_runtime.spec import ContainerSpec, Mount
from tests.unit.smdebug.runs import RunMaker

IMAGES = ("sagemaker-debugger-rules", "sagemaker-debugger-rule-evaluator")


@pytest.fixture(scope="module")
def back_ends(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, LocalProcesses]]:
    folder = tmp_path_factory.mktemp("rules")
    warm = LocalProcesses(folder / "warm", warm=WarmOptions())
    with pytest.MonkeyPatch.context() as patched:
        # A rule that waits longer for the imports of its interpreter, on a busy machine, starts a new one.
        patched.setattr(warm_interpreters, "_LONGEST_WAIT_SECONDS", 400.0)
        yield {"cold": LocalProcesses(folder / "cold"), "warm": warm}
    warm.close()


def judge(runtime: LocalProcesses, image: str, folder: Path, rule: str, **parameters: str) -> dict[str, Any]:
    """Evaluate a rule; return its exit code, its log without times, its verdict and the names of what it wrote."""
    config = {
        "TrainingJobName": "job",
        "RuleConfigurationName": "my-rule",
        "RuleParameters": {"rule_to_invoke": rule, **parameters},
        "TensorsS3Uri": "/opt/ml/run",
        "OutputPath": "/opt/ml/output/rule",
        "VerdictPath": "/opt/ml/output/verdict.json",
    }
    (folder / "output").mkdir(exist_ok=True)
    (folder / "ruleconfig.json").write_text(json.dumps(config))
    variables = {"SMDEBUG_RULE_CONFIG_PATH": "/opt/ml/ruleconfig.json"}
    mount = Mount(folder, "/opt/ml")
    container = runtime.start(ContainerSpec("rule", image, environment=variables, mounts=(mount,), niceness=2))
    lines = [re.sub(r"^\[\S+ \S+ (\S+):\d+", r"[\1", line.text) for line in runtime.logs(container)]
    ended = runtime.wait(container)
    runtime.remove(container)
    verdict = json.loads((folder / "output" / "verdict.json").read_text())
    written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return {"exit": ended, "log": lines, "verdict": verdict, "written": written}


@pytest.mark.slow
@pytest.mark.parametrize("gradient", [1e-9, 1.0])
def test_a_forked_rule_judges_logs_and_writes_as_a_new_one(
    back_ends: dict[str, LocalProcesses], tmp_path: Path, gradient: float
) -> None:
    judged = {}
    for name, runtime in back_ends.items():
        maker = RunMaker(tmp_path / name / "run")
        for step in range(3):
            maker.write_step(step, {"gradient/a": np.full((2, 3), gradient, "float32")})
        maker.end()
        judged[name] = judge(runtime, IMAGES[0], tmp_path / name, "VanishingGradient")
    assert judged["warm"] == judged["cold"]
    assert judged["warm"]["verdict"]["RuleEvaluationStatus"] == ("IssuesFound" if gradient < 1 else "NoIssuesFound")
    assert not any("new interpreter" in line or "without a warm" in line for line in judged["warm"]["log"])


def test_both_images_of_rules_share_one_interpreter(back_ends: dict[str, LocalProcesses], tmp_path: Path) -> None:
    RunMaker(tmp_path / "run").end()
    for image in IMAGES:
        judged = judge(back_ends["warm"], image, tmp_path, "VanishingGradient")
        assert judged["verdict"]["RuleEvaluationStatus"] == "Error"
    assert len(back_ends["warm"]._warm._interpreters) == 1
