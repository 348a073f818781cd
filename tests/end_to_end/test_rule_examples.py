"""Tests of every built-in rule on a real faulty training and its corrected twin."""

import io
import json
import re
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from emulator.gateway.protocol import load_operation
from examples.rules.__main__ import run_example
from examples.rules.job import Example, build_request, find_examples
from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.demo.training_job import BUCKET, stage_digits
from smdebug.rules.builtin import list_names
from tests.forked_emulator import ForkedEmulator
from tests.running_emulator import CONTAINERS, RunningEmulator

Runs = dict[str, Future[dict[str, Any]]]

EXAMPLES = find_examples()
# A job is a process that imports its framework, and one for its rule: more at once only wait for each other.
AT_ONCE = 3
SECONDS = 560
# What the rules say of tensors does not depend on where they were written.
IN_CONTAINERS = ["vanishing_gradient", "tree_depth", "similar_across_runs"]


@contextmanager
def start_all(emulator: RunningEmulator, examples: Collection[str], *, cured: bool) -> Iterator[Runs]:
    """Run the examples, a few at a time, while tests look at those that have ended."""
    suffix = f"-{uuid.uuid4().hex[:6]}"
    # The one that has to wait for its verdict goes first.
    names = sorted(examples, key=lambda name: name != "stalled_training_rule")
    # Made here: boto3 walks through the environment, from which pytest takes a variable whenever a test ends.
    sagemaker, s3 = emulator.client("sagemaker"), emulator.client("s3")
    stage_digits(s3)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            name: pool.submit(run_example, sagemaker, s3, build_example(name, cured=cured), cured=cured, suffix=suffix)
            for name in names
        }


def build_example(name: str, *, cured: bool) -> Example:
    """The example; cured it has no silence, however long a slow machine takes to begin with the training."""
    example = EXAMPLES[name]
    patient = {"threshold": "250"} if cured and example.rule == "StalledTrainingRule" else {}
    return replace(example, parameters=example.parameters | patient)


@pytest.fixture(scope="module")
def local(request: pytest.FixtureRequest, start_emulator: Callable[..., RunningEmulator]) -> Iterator[RunningEmulator]:
    # One of them alone has one job.
    running = start_emulator("process", warm=len(find_names(request, "sick") | find_names(request, "cured")) > 1)
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def sick(request: pytest.FixtureRequest, local: RunningEmulator) -> Iterator[Runs]:
    with start_all(local, find_names(request, "sick"), cured=False) as runs:
        yield runs


@pytest.fixture(scope="module", params=CONTAINERS)
def sick_in_containers(
    request: pytest.FixtureRequest, start_emulator: Callable[[str], RunningEmulator]
) -> Iterator[Runs]:
    running = start_emulator(request.param)
    with start_all(running, find_names(request, "sick_in_containers"), cured=False) as runs:
        yield runs
    assert running.stop() == 0


@pytest.fixture(scope="module")
def cured(request: pytest.FixtureRequest, local: RunningEmulator) -> Iterator[Runs]:
    with start_all(local, find_names(request, "cured"), cured=True) as runs:
        yield runs


def find_names(request: pytest.FixtureRequest, fixture: str) -> set[str]:
    """Return the examples of the chosen tests of this file that have a fixture."""
    return {
        str(item.callspec.params["name"])
        for item in request.session.items
        if item.path == request.path and isinstance(item, pytest.Function) and fixture in item.fixturenames
    }


def get_verdict(description: dict[str, Any]) -> str:
    (rule,) = description["DebugRuleEvaluationStatuses"]
    return f"{rule['RuleEvaluationStatus']}: {rule.get('StatusDetails', '')}"


def test_every_built_in_rule_has_an_example() -> None:
    """By day they do not train: test_stopped_by_rule.py has a rule's verdicts, and formulas have unit tests."""
    assert sorted(example.rule for example in EXAMPLES.values()) == sorted(list_names())


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_request_is_one_that_the_service_takes(name: str) -> None:
    """Its script is one that Python takes, too."""
    s3 = Mock()
    for cured in (False, True):
        request = build_request(s3, EXAMPLES[name], "job", cured=cured, other_job="other")
        parsed = load_operation("CreateTrainingJob").decode(json.dumps(request).encode())
        (rule,) = parsed["DebugRuleConfigurations"]
        assert rule["RuleParameters"]["rule_to_invoke"] == EXAMPLES[name].rule
    bundle = s3.put_object.call_args.kwargs["Body"]
    with tarfile.open(fileobj=io.BytesIO(bundle)) as tar:
        for member in tar:
            script = tar.extractfile(member)
            assert script is not None
            compile(script.read(), member.name, "exec")


def assert_found(description: dict[str, Any], example: Example) -> None:
    expected = "IssuesFound: RuleEvaluationConditionMet" if example.fires else "NoIssuesFound"
    assert get_verdict(description).startswith(expected), description
    stopped = example.rule == "StalledTrainingRule"
    assert description["TrainingJobStatus"] == ("Stopped" if stopped else "Completed"), description


@pytest.mark.nightly
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_mistake_is_found(sick: Runs, name: str) -> None:
    assert_found(sick[name].result(SECONDS), EXAMPLES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", IN_CONTAINERS)
def test_the_mistake_is_found_in_a_container(sick_in_containers: Runs, name: str) -> None:
    assert_found(sick_in_containers[name].result(SECONDS), EXAMPLES[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in EXAMPLES if EXAMPLES[name].report])
def test_what_judges_nothing_leaves_its_report(sick: Runs, name: str, local: RunningEmulator) -> None:
    description = sick[name].result(SECONDS)
    report = EXAMPLES[name].report
    assert report is not None
    found = local.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"output/{description['TrainingJobName']}/")
    assert [item["Key"] for item in found["Contents"] if item["Key"].endswith(report)]


@pytest.mark.nightly
@pytest.mark.parametrize("name", EXAMPLES)
def test_without_the_mistake_nothing_is_found(cured: Runs, name: str) -> None:
    description = cured[name].result(SECONDS)
    assert get_verdict(description).startswith("NoIssuesFound"), description
    assert description["TrainingJobStatus"] == "Completed", description


def run_command(output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "examples.rules", "all_zero", "--runtime", "process", "--output", str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.nightly
def test_the_command_keeps_and_names_what_it_made(tmp_path: Path) -> None:
    done = run_command(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (job,) = re.findall(r"Job (\S+) left", done.stdout)
    named = re.findall(r"s3://([^/\s]+)/(\S+)", done.stdout)
    assert {key.rpartition("/")[2] for _, key in named} == {"", "plot.svg", "report.json"}
    assert f"--state-dir {tmp_path / 'state'}" in done.stdout
    with ForkedEmulator(tmp_path / "state", runtime="process") as emulator:
        client = EmulatorSession(emulator.endpoint_url).client
        assert client("sagemaker").describe_training_job(TrainingJobName=job)["TrainingJobStatus"] == "Completed"
        assert all(client("s3").list_objects_v2(Bucket=bucket, Prefix=key)["KeyCount"] for bucket, key in named)
        # One emulator has the folder: another run says so.
        refused = run_command(tmp_path)
    assert refused.returncode == 1
    assert f"No emulator can be started on {tmp_path}" in refused.stdout
    assert "Traceback" not in refused.stderr
