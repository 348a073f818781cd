"""Tests of a profiler rule container: verdict and report, running and stopped."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from smdebug.rules.container.rule_config import parse_rule_config
from smdebug.rules.evaluator import judge
from tests.integration.smdebug.rules.rule_container import build_config, start_container
from tests.unit.smdebug.object_storage import BUCKET, Storage
from tests.unit.smdebug.profiler.profile_maker import ProfileMaker
from tests.waiting import wait_until

CUSTOM = """
from smdebug.profiler.system_samples import CPU
from smdebug.rules.parameters import number
from smdebug.rules.profiling.profiler_rule import SampleRule

class IdleCore(SampleRule):
    parameters = (number("limit", 10),)
    inspects = "cores"
    kinds = (CPU,)

    def observe(self, sample):
        self.least = min(sample.get(CPU).values())

    def judge(self, node, time):
        if self.least < self.values["limit"]:
            yield self.find(node, time, self.least, self.values["limit"], f"a core is at {self.least:g} %")
"""


@pytest.fixture
def maker(tmp_path: Path) -> ProfileMaker:
    return ProfileMaker(tmp_path / "job" / "profiler-output")


def build(tmp_path: Path, profile: str, rule: str, **parameters: str) -> dict[str, Any]:
    return {**build_config(tmp_path, str(tmp_path / "tensors"), rule, **parameters), "ProfilerS3Uri": profile}


@contextmanager
def start(tmp_path: Path, config: dict[str, Any]) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    with start_container(tmp_path, config) as container:
        assert container.stdout is not None
        try:
            yield container, container.stdout
        finally:
            container.kill()


def starve(maker: ProfileMaker, begin: int, end: int) -> None:
    for second in range(begin, end):
        maker.add_sample(second, cpu=[95.0, 3.0], gpu=[5.0])


def test_a_container_gives_its_verdict_while_the_job_runs(tmp_path: Path, maker: ProfileMaker) -> None:
    starve(maker, 0, 50)
    with start(tmp_path, build(tmp_path, str(maker.folder), "CPUBottleneck", patience="10")) as (container, printed):
        assert any("Rule CPUBottleneck waits for the profile" in line for line in printed)
        starve(maker, 50, 101)
        assert "Rule CPUBottleneck fired 1 time in" in printed.read()
        assert container.wait() == 0
    verdict = json.loads((tmp_path / "output/verdict.json").read_text())
    assert verdict["RuleEvaluationStatus"] == "IssuesFound"
    report = json.loads((tmp_path / "output/rule/profiler-output/profiler-reports/CPUBottleneck.json").read_text())
    assert report["RuleTriggered"] == 1
    assert report["Details"]["Findings"][0]["node"] == "algo-1"


def test_a_container_follows_a_healthy_job_to_its_end(tmp_path: Path, maker: ProfileMaker) -> None:
    with start(tmp_path, build(tmp_path, str(maker.folder), "CPUBottleneck", patience="10")) as (container, printed):
        for second in range(200):
            maker.add_sample(second, cpu=[95.0, 3.0], gpu=[90.0])
        maker.end()
        assert "found no issue in 200 data points" in printed.read()
        assert container.wait() == 0


def test_a_report_is_written_again_while_the_job_runs(tmp_path: Path, maker: ProfileMaker) -> None:
    starve(maker, 0, 100)
    config = build(
        tmp_path, str(maker.folder), "ProfilerReport", custom_rule_parameters="{'CPUBottleneck_patience': 10}"
    )
    page = tmp_path / "output/rule/profiler-output/profiler-report.html"
    with start(tmp_path, config) as (container, printed):
        wait_until(page.exists)
        assert "still running" in page.read_text()
        starve(maker, 100, 200)
        maker.end()
        assert "Fired: CPUBottleneck 4 times" in printed.read()
        assert container.wait() == 0
    assert "The job has ended." in page.read_text()
    assert "CPU bottlenecks" in page.read_text()
    verdict = json.loads((tmp_path / "output/verdict.json").read_text())
    assert verdict["RuleEvaluationStatus"] == "IssuesFound"


def test_a_container_that_is_stopped_leaves_no_verdict(tmp_path: Path, maker: ProfileMaker) -> None:
    with start(tmp_path, build(tmp_path, str(maker.folder), "OverallSystemUsage")) as (container, printed):
        assert any("waits for the profile" in line for line in printed)
        container.send_signal(signal.SIGTERM)
        assert container.wait() == 143
    assert not (tmp_path / "output/verdict.json").exists()


def test_a_custom_rule_judges_the_profile_and_counts(storage: Storage, tmp_path: Path, maker: ProfileMaker) -> None:
    storage.put("rules/mine.py", CUSTOM.encode())
    starve(maker, 0, 150)
    maker.end()
    source = {"source_s3_uri": f"s3://{BUCKET}/rules/mine.py"}
    config = parse_rule_config(build(tmp_path, str(maker.folder), "IdleCore", **source, limit="5"))
    verdict = judge(config, tmp_path / "source")
    assert verdict.status == "IssuesFound", verdict
    assert "Rule IdleCore fired 3 times in 150 data points. algo-1: a core is at 3 %" in verdict.details
    config = parse_rule_config(build(tmp_path, str(maker.folder), "IdleCore", **source, limt="5"))
    assert "there is no parameter 'limt'" in judge(config, tmp_path / "again").details


def test_a_rule_that_is_not_there_is_refused_in_words(tmp_path: Path, maker: ProfileMaker) -> None:
    verdict = judge(parse_rule_config(build(tmp_path, str(maker.folder), "NoSuchRule")), tmp_path)
    assert verdict.status == "Error"
    assert "There is no profiler rule 'NoSuchRule'. The profiler rules are: AllCoresBusy, BatchSize" in verdict.details


def test_a_profile_on_s3_is_followed(storage: Storage, tmp_path: Path, maker: ProfileMaker) -> None:
    starve(maker, 0, 30)
    maker.add_events([("Step:ModeKeys.TRAIN", at, 0.5, {"step_num": str(at)}) for at in range(20)])
    with maker.locate_minute(0).open("a") as file:
        file.write("{\n")
    maker.end()
    for path in maker.folder.rglob("*.*"):
        storage.put(f"job/profiler-output/{path.relative_to(maker.folder)}", path.read_bytes())
    uri = f"s3://{BUCKET}/job/profiler-output"
    verdict = judge(parse_rule_config(build(tmp_path, uri, "CPUBottleneck", patience="10")), tmp_path)
    assert "fired 1 time in 30 data points. algo-1: in 100 % of 20 data points" in verdict.details
    assert verdict.details.endswith("1 damaged line skipped.")
    steps = judge(parse_rule_config(build(tmp_path, uri, "StepOutlier")), tmp_path)
    assert steps.details.startswith("Rule StepOutlier found no issue in 20 data points.")
