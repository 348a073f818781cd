"""Tests of a job outside its page: calls, a report, a notebook, an export."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from sdk_compat.demo.training_job import BUCKET
from sdk_compat.environment import prepare_environment
from sdk_compat.notebook import TrainingJob
from tests.end_to_end.api_answers import find_differences, list_described
from tests.end_to_end.console.jobs_from_elsewhere import STRANGE_NAME
from tests.end_to_end.console.page import PATIENCE_MS, REGION, Console, ask_emulator, run_command
from tests.running_emulator import RunningEmulator


def test_a_report_opens_offline_and_shows_what_the_page_does(console: Console, ended: str, tmp_path: Path) -> None:
    target = tmp_path / "report.html"
    assert "Wrote" in run_command(console, "report", ended, "-o", str(target))
    page = console.page
    page.context.set_offline(True)
    page.goto(target.as_uri())
    expect(page.locator("[data-rule='VanishingGradient'] h3")).to_contain_text("NoIssuesFound")
    expect(page.locator("[data-warning='NoGpu']")).to_be_visible()
    page.get_by_role("link", name="Logs", exact=True).click()
    expect(page.get_by_role("log")).to_contain_text("test_accuracy=")
    page.get_by_role("link", name="Profiler", exact=True).click()
    for shown in (page.locator("figcaption", has_text="Processor"), page.locator("canvas.flames")):
        expect(shown).to_be_visible()
    expect(page.locator(".problem")).to_have_count(0)
    page.get_by_role("link", name="Tensors").click()
    for kind in ("histogram", "heat map", "values"):
        page.get_by_role("button", name=kind, exact=True).click()
        expect(page.locator("figure canvas, .numbers").first).to_be_visible()
        expect(page.locator(".problem")).to_have_count(0)


def test_answers_are_what_the_openapi_document_says(running: RunningEmulator, ended: str, strange: str) -> None:
    document = ask_emulator(running, "GET", "openapi.json")
    job = f"jobs/{REGION}/{ended}"
    run, profile = ask_emulator(running, "GET", f"{job}/tensors"), ask_emulator(running, "GET", f"{job}/profile")
    tensor, python = quote(run["tensors"][0]["name"]), profile["pythonProfiles"][0]
    links = ask_emulator(running, "GET", job)["links"]
    bucket, _, model = links["model"].removeprefix("s3://").partition("/")
    (rule, *_) = ask_emulator(running, "GET", job)["rules"]
    others = f"jobs/{REGION}/{strange}"
    asked: dict[str, list[str]] = {
        "health": ["health"],
        "jobs": ["jobs", "jobs?descriptions=1"],
        "jobs/{region}/{name}": [job, others],
        "jobs/{region}/{name}/logs": [f"{job}/logs", f"{job}/logs?rule={rule['name']}"],
        "jobs/{region}/{name}/metrics": [f"{job}/metrics"],
        "jobs/{region}/{name}/profile": [f"{job}/profile", f"{others}/profile"],
        "jobs/{region}/{name}/profile/flame-graph": [f"{job}/profile/flame-graph?process={quote(python['process'])}"],
        "jobs/{region}/{name}/tensors": [f"{job}/tensors", f"{others}/tensors"],
        "jobs/{region}/{name}/tensors/series": [
            f"{job}/tensors/series?tensor={tensor}",
            f"{others}/tensors/series?tensor=loss",
        ],
        "jobs/{region}/{name}/tensors/histogram": [f"{others}/tensors/histogram?tensor=scores"],
        "jobs/{region}/{name}/tensors/heat-map": [f"{others}/tensors/heat-map?regex=."],
        "jobs/{region}/{name}/tensors/values": [
            f"{job}/tensors/values?tensor={tensor}",
            *(f"{others}/tensors/values?tensor={quote(name)}" for name in ("words", "empty", STRANGE_NAME)),
        ],
        "jobs/{region}/{name}/tensors/confusion": [f"{others}/tensors/confusion?labels=y&predictions=scores"],
        "jobs/{region}/{name}/rules/{rule}/retry": [f"{job}/rules/{rule['name']}/retry"],
        "jobs/{region}/{name}/tags": [f"{job}/tags"],
        "s3": ["s3"],
        "s3/{bucket}": [f"s3/{bucket}", f"s3/{bucket}?prefix={model.rpartition('/')[0]}/"],
        "s3/{bucket}/archive": [f"s3/{bucket}/archive?key={quote(model)}"],
        "events": ["events", "events?limit=1000"],
    }
    of_other_kinds = ("processing-jobs", "tuning-jobs", "pipeline-executions")
    described = {each for each in list_described(document) if not each.startswith(of_other_kinds)}
    # test_jobs.py asks for the last: TensorBoard is slow to start.
    assert described == asked.keys() | {"jobs/{region}/{name}/tensorboard"}
    assert find_differences(document, asked, lambda *question: ask_emulator(running, *question)) == []


def test_a_notebook_shows_a_job_with_the_plots_of_its_rules(console: Console, ended: str) -> None:
    console.page.set_content(TrainingJob(ended, console.emulator.endpoint_url)._repr_html_())
    expect(console.page.get_by_role("link", name=ended)).to_be_visible()
    expect(console.page.get_by_text("ml.g5.2xlarge: no GPU here")).to_be_visible()
    assert console.page.locator("img").evaluate_all("images => images.every(each => each.naturalWidth > 100)")
    assert console.page.locator("img").count() >= 1


def test_an_exported_job_comes_back(console: Console, ended: str, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    run_command(console, "export", ended, "-o", str(folder))
    assert "test_accuracy=" in "".join(path.read_text() for path in (folder / "logs").iterdir())
    sagemaker, s3 = console.emulator.client("sagemaker"), console.emulator.client("s3")
    before = sagemaker.describe_training_job(TrainingJobName=ended)
    sagemaker.delete_training_job(TrainingJobName=ended)
    s3.delete_object(Bucket=BUCKET, Key=f"output/{ended}/output/model.tar.gz")
    assert "Imported " in run_command(console, "import", str(folder))
    after = sagemaker.describe_training_job(TrainingJobName=ended)
    assert {**after, "ResponseMetadata": None} == {**before, "ResponseMetadata": None}
    assert s3.head_object(Bucket=BUCKET, Key=f"output/{ended}/output/model.tar.gz")["ContentLength"] > 0
    (folder / "job.json").write_text('{"format": 99}')
    with pytest.raises(AssertionError, match=r"was written by another version \(format 99, not 1\): export it again"):
        run_command(console, "import", str(folder))
    (folder / "job.json").write_text("{}")
    with pytest.raises(AssertionError, match="is not an exported job"):
        run_command(console, "import", str(folder))
    assert run_command(console, "open", ended, "--print").strip().endswith(f"/console#/jobs/{REGION}/{ended}")


@pytest.mark.parametrize(
    "chosen",
    # The console's own tests have the text of all; AWS CLI and SDK take seconds to import.
    [("boto3",), pytest.param(("AWS CLI", "SDK"), marks=pytest.mark.nightly)],
)
def test_a_job_is_copied_as_calls_that_create_it(
    console: Console, ended: str, tmp_path: Path, chosen: tuple[str, ...]
) -> None:
    page, sagemaker = console.go(f"jobs/{REGION}/{ended}/configuration"), console.emulator.client("sagemaker")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    environment |= prepare_environment(console.emulator.endpoint_url, environment, folder=tmp_path)
    # What the SDK's call returns for is the job's end: here its beginning is enough.
    waits_for_nothing = (
        "import functools\nfrom sagemaker.estimator import Estimator\n"
        "Estimator.fit = functools.partialmethod(Estimator.fit, wait=False)\n"
    )
    commands = {
        "boto3": [sys.executable, "-c", "{}"],
        "AWS CLI": ["sh", "-c", f'PATH="{Path(sys.executable).parent}:$PATH"; {{}}'],
        "SDK": [sys.executable, "-c", f"{waits_for_nothing}{{}}"],
    }
    original = ask_emulator(console.emulator, "GET", f"jobs/{REGION}/{ended}")["request"]
    known = {job["TrainingJobName"] for job in sagemaker.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]}
    for what in chosen:
        page.get_by_role("button", name=f"Copy as {what}").click()
        expect(page.get_by_text(f"Copied as {what}.")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()").replace(
            f"{ended}-again", f"{ended}-{what[:3].lower()}"
        )
        done = subprocess.run(
            [part.replace("{}", copied) for part in commands[what]],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_MS / 1000,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        names = {job["TrainingJobName"] for job in sagemaker.list_training_jobs(MaxResults=100)["TrainingJobSummaries"]}
        (name,) = names - known
        known = names
        sagemaker.stop_training_job(TrainingJobName=name)
        made = ask_emulator(console.emulator, "GET", f"jobs/{REGION}/{name}")["request"]
        members = {"HyperParameters", "StoppingCondition"} if what == "SDK" else set(original)
        for member in members - {"TrainingJobName"}:
            assert made[member] == original[member], (what, member)
        saved, wanted = (
            {each["CollectionName"]: each["CollectionParameters"] for each in hook["CollectionConfigurations"]}
            for hook in (made["DebugHookConfig"], original["DebugHookConfig"])
        )
        assert saved == wanted
        for member in ("TrainingImage", "MetricDefinitions"):
            assert made["AlgorithmSpecification"][member] == original["AlgorithmSpecification"][member]
        assert [each["RuleParameters"] for each in made["DebugRuleConfigurations"]] == [
            each["RuleParameters"] for each in original["DebugRuleConfigurations"]
        ]
