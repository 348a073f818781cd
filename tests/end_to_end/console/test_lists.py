"""Browser tests of lists and pages of jobs of every kind, among hundreds of jobs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, Route, expect

from emulator.console.build import build_console, install_packages
from sdk_compat.demo.training_job import BUCKET, ROLE_ARN, TRAINING_IMAGE
from tests.chromium import visit
from tests.commands import run_command
from tests.end_to_end.api_answers import find_differences, list_described
from tests.end_to_end.console.page import PATIENCE_MS, find_violations
from tests.end_to_end.many_jobs import FAILED_EVERY, REGION, TRIALS, TUNING, store_jobs
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

    from tests.running_emulator import RunningEmulator

JOBS = 228
LISTED = JOBS + len(TRIALS)
PIPELINE = "nightly"
FAILING = "fails-loudly"


@pytest.fixture(scope="module")
def running(
    start_emulator: Callable[..., RunningEmulator], tmp_path_factory: pytest.TempPathFactory
) -> RunningEmulator:
    """An emulator that finds the jobs of an earlier one in its state folder; a pipeline and a failing job ran in it."""
    build_console()
    state_dir: Path = tmp_path_factory.mktemp("many") / "state"
    store_jobs(state_dir, JOBS)
    emulator = start_emulator("process", state_dir=state_dir, warm=False)
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    run_pipeline(emulator)
    lines = "import sys; [print('line', each) for each in range(30)]; sys.exit('what went wrong')"
    emulator.client("sagemaker").create_training_job(
        TrainingJobName=FAILING, **build_training(lines), StoppingCondition={"MaxRuntimeInSeconds": 60}
    )
    wait_until(lambda: ask(emulator, f"jobs/{REGION}/{FAILING}")["status"] == "Failed")
    return emulator


def build_training(program: str) -> dict[str, Any]:
    return {
        "RoleArn": ROLE_ARN,
        "AlgorithmSpecification": {
            "TrainingImage": TRAINING_IMAGE,
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python3", "-c", program],
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
    }


def run_pipeline(emulator: RunningEmulator) -> None:
    """Run a pipeline: prepare, train, and a condition behind which another training is, or a failure."""
    cluster = {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1}
    program = ["python3", "-c", "print('prepared')"]
    prepare = {
        "AppSpecification": {"ImageUri": TRAINING_IMAGE, "ContainerEntrypoint": program},
        "ProcessingResources": {"ClusterConfig": cluster},
        "RoleArn": ROLE_ARN,
    }
    training = {**build_training("print('trained')"), "StoppingCondition": {"MaxRuntimeInSeconds": 60}}
    equal = {"Type": "Equals", "LeftValue": {"Get": "Parameters.mode"}, "RightValue": "quick"}
    branches = {
        "IfSteps": [{"Name": "Refuse", "Type": "Fail", "Arguments": {"ErrorMessage": "was quick"}}],
        "ElseSteps": [{"Name": "TrainAgain", "Type": "Training", "Arguments": training}],
    }
    steps = [
        {"Name": "Prepare", "Type": "Processing", "Arguments": prepare},
        {"Name": "Train", "Type": "Training", "Arguments": training, "DependsOn": ["Prepare"]},
        {
            "Name": "Check",
            "Type": "Condition",
            "Arguments": {"Conditions": [equal], **branches},
            "DependsOn": ["Train"],
        },
    ]
    parameters = [{"Name": "mode", "Type": "String", "DefaultValue": "quick"}]
    definition = json.dumps({"Version": "2020-12-01", "Parameters": parameters, "Steps": steps})
    sagemaker = emulator.client("sagemaker")
    sagemaker.create_pipeline(
        PipelineName=PIPELINE, PipelineDefinition=definition, RoleArn=ROLE_ARN, ClientRequestToken="t" * 32
    )
    arn = sagemaker.start_pipeline_execution(PipelineName=PIPELINE)["PipelineExecutionArn"]
    describe = sagemaker.describe_pipeline_execution
    wait_until(
        lambda: describe(PipelineExecutionArn=arn)["PipelineExecutionStatus"] == "Failed",
        lambda: describe(PipelineExecutionArn=arn),
    )


def ask(emulator: RunningEmulator, path: str) -> dict[str, Any]:
    with urlopen(f"{emulator.endpoint_url}/_emulator/{path}", timeout=PATIENCE_MS / 1000) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


@pytest.fixture
def page(browser: Browser, running: RunningEmulator) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, base_url=running.endpoint_url)
    context.set_default_timeout(PATIENCE_MS)
    wrong: list[str] = []
    opened = context.new_page()
    opened.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    yield opened
    context.close()
    # 503: the streams of pages that were just left still count, and a page tries again when there are too many.
    # 404: jobs that are compared have no tensors.
    harmless = ("ERR_NETWORK_CHANGED", "503", "404")
    assert [text for text in wrong if not any(each in text for each in harmless)] == []


def test_a_list_says_how_many_there_are_and_has_pages(page: Page) -> None:
    visit(page, "/console#/jobs")
    said = page.locator("main [role=status]").first
    total = LISTED + 2
    expect(said).to_have_text(f"Latest 100 of {total} jobs")
    expect(page.locator("tbody tr")).to_have_count(100)
    page.get_by_role("button", name="Older").click()
    expect(said).to_have_text(f"101 to 200 of {total} jobs")
    expect(page).to_have_url(re.compile(r"#/jobs\?page=2$"))
    page.get_by_role("button", name="Older").click()
    expect(page.locator("tbody tr")).to_have_count(total - 200)
    expect(page.get_by_role("button", name="Older")).to_be_disabled()
    visit(page, "/console#/jobs?page=99")
    expect(said).to_have_text("No jobs on page 99: there are 3 pages.")
    page.get_by_role("button", name="Newer").click()
    expect(said).to_have_text(f"201 to {total} of {total} jobs")


def test_filters_are_in_the_address_and_come_back(page: Page) -> None:
    visit(page, "/console#/jobs")
    said = page.locator("main [role=status]").first
    failed = len(range(0, JOBS, FAILED_EVERY)) + 2
    page.get_by_label("Status").select_option("Failed")
    expect(said).to_have_text(f"{failed} jobs")
    page.get_by_label("Rule verdict").select_option("IssuesFound")
    page.get_by_label("Search jobs").fill("churn")
    page.get_by_label("Image").fill("tabular")
    numbers = [each for each in range(JOBS) if each % FAILED_EVERY == 0 and each % 10 == 1 and each % 6 == 3]
    expect(page.locator("tbody tr")).to_have_count(len(numbers))
    expect(page).to_have_url(re.compile(r"#/jobs\?words=churn&status=Failed&rule=IssuesFound&image=tabular$"))
    page.locator("tbody a").first.click()
    expect(page.locator("h1")).to_have_text(f"churn-{numbers[-1]:04}")
    page.go_back()
    expect(page.get_by_label("Search jobs")).to_have_value("churn")
    expect(page.get_by_label("Status")).to_have_value("Failed")
    expect(page.locator("tbody tr")).to_have_count(len(numbers))
    page.get_by_label("Search jobs").fill("nothing like it")
    expect(said).to_have_text("No job matches.")


def test_a_late_answer_replaces_none_to_a_later_question(page: Page) -> None:
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(re.compile(r"/_emulator/jobs\?"), hold_first)
    visit(page, "/console#/jobs")
    said = page.locator("main [role=status]").first
    page.get_by_label("Status").select_option("Failed")
    failed = f"{len(range(0, JOBS, FAILED_EVERY)) + 2} jobs"
    expect(said).to_have_text(failed)
    with page.expect_response(lambda answer: "/_emulator/jobs?" in answer.url and "status=" not in answer.url) as late:
        held[0].continue_()
    late.value.finished()
    page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(done)))")
    assert said.text_content() == failed


def test_columns_keep_their_widths_whatever_failed(page: Page) -> None:
    widths = "cells => cells.map(cell => Math.round(cell.getBoundingClientRect().width))"
    found = []
    for status in ("Failed", "Completed"):
        visit(page, f"/console#/jobs?status={status}&words=churn")
        expect(page.locator("tbody tr").first).to_be_visible(timeout=PATIENCE_MS)
        found.append(page.locator("thead th").evaluate_all(widths))
        page.goto("about:blank")
    assert found[0] == found[1]
    visit(page, "/console#/jobs?status=Failed&words=churn")
    expect(page.locator(".reason").first).to_have_attribute("title", re.compile("mat1 and mat2"))
    assert page.locator("tbody tr").first.evaluate("row => row.getBoundingClientRect().height") < 100


def test_the_search_is_reached_from_anywhere_and_compare_follows_the_list(page: Page) -> None:
    visit(page, f"/console#/jobs/{REGION}/{FAILING}")
    expect(page.locator("[data-last-lines]")).to_be_visible(timeout=PATIENCE_MS)
    page.keyboard.press("/")
    search = page.get_by_label("Search jobs")
    expect(search).to_be_focused()
    page.keyboard.type("a/b")
    expect(search).to_have_value("a/b")
    search.fill("churn-022")
    expect(page.get_by_role("rowheader", name="churn-0227")).to_be_visible()
    first, second = (page.get_by_label(f"Compare churn-022{number}") for number in (6, 7))
    first.check()
    second.check()
    expect(first).to_be_checked()
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.get_by_label("Status").focus()
    page.keyboard.press("/")
    expect(search).to_be_focused()
    page.get_by_label("Compare churn-0220").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    compare = page.get_by_role("link", name="Compare 2 jobs")
    expect(compare).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("2 jobs compared")


def test_a_failed_job_shows_the_last_lines_of_its_log(page: Page) -> None:
    visit(page, f"/console#/jobs/{REGION}/{FAILING}")
    lines = page.get_by_role("region", name="Last lines of the log")
    expect(lines).to_contain_text("what went wrong")
    expect(lines).to_contain_text("line 29")
    expect(lines).not_to_contain_text("line 3\n")
    page.get_by_role("link", name="The whole log").click()
    expect(page.get_by_role("log")).to_contain_text("line 3")


def test_page_command_and_api_say_the_same_of_where_a_jobs_seconds_went(page: Page, running: RunningEmulator) -> None:
    spent = {each["phase"]: each["seconds"] for each in ask(running, f"jobs/{REGION}/{FAILING}")["spent"]}
    assert spent
    described = json.loads(ask_command(running, "describe", FAILING, "--json"))
    assert described["SecondsSpent"] == spent
    visit(page, f"/console#/jobs/{REGION}/{FAILING}")
    shown = page.locator("p.spent")
    expect(shown).to_contain_text("Seconds spent")
    for text in (shown.inner_text(), ask_command(running, "describe", FAILING).partition("Seconds spent")[2]):
        figures = {phase: float(re.search(rf"{phase} ([\d.]+)", text)[1]) for phase in spent}  # type: ignore[index]
        assert figures == pytest.approx(spent, abs=0.006)  # two digits


def test_a_tuning_job_shows_its_trials_and_the_best(page: Page) -> None:
    visit(page, "/console#/tuning")
    row = page.locator(f"tr[data-job={TUNING}]")
    expect(row).to_contain_text("4 of 6")
    expect(row).to_contain_text("0.2 loss")
    row.get_by_role("link").click()
    expect(page.locator("[data-best]")).to_contain_text(f"{TUNING}-002 with loss = 0.2")
    trials = page.locator("table tr[data-trial]")
    shown = trials.evaluate_all("rows => rows.map((row) => row.dataset.trial)")
    assert shown == [f"{TUNING}-00{number}" for number in (2, 4, 1, 3)]
    expect(trials.first.locator("td")).to_have_text(["● Completed", "0.2", "0.001", "adam", "4.0 s"])
    lines = page.locator("polyline")
    assert [line.get_attribute("points") for line in lines.all()][-1] == page.locator("polyline.best").get_attribute(
        "points"
    )
    # The trial without a value ends before the axis of the objective.
    points = page.locator(f"polyline[data-trial={TUNING}-003]").get_attribute("points") or ""
    assert len(points.split()) == 2
    page.get_by_role("link", name=f"{TUNING}-004").click()
    expect(page.locator("main")).to_contain_text(f"Trial of the tuning job {TUNING}")
    page.get_by_role("link", name=TUNING, exact=True).click()
    expect(trials).to_have_count(len(TRIALS))


def test_a_pipeline_shows_its_graph_and_leads_to_its_jobs_and_back(page: Page) -> None:
    visit(page, "/console#/pipelines")
    row = page.locator("tbody tr")
    expect(row).to_contain_text(PIPELINE)
    row.get_by_role("link").click()
    statuses = {"Prepare": "Succeeded", "Train": "Succeeded", "Check": "Succeeded", "Refuse": "Failed"}
    for name, status in statuses.items():
        expect(page.locator(f"tr[data-step={name}]")).to_contain_text(status)
        expect(page.locator(f".step[data-step={name}]")).to_contain_text("True" if name == "Check" else status)
    expect(page.locator(".step[data-step=TrainAgain]")).to_contain_text("not started")
    assert page.locator(".arrow").count() == 4
    expect(page.locator("dl.pairs")).to_contain_text("quick")
    heading = page.locator("h1").inner_text()
    for name, kind in (("Train", "jobs"), ("Prepare", "processing")):
        page.locator(f"svg a[aria-label^='{name}:']").click()
        expect(page.locator("main")).to_contain_text("Step of the pipeline nightly")
        expect(page).to_have_url(re.compile(f"#/{kind}/"))
        page.locator("main").get_by_role("link", name=PIPELINE).click()
        expect(page.locator("h1")).to_have_text(heading)


def test_processing_jobs_show_their_logs_and_rules_what_they_judge(page: Page, running: RunningEmulator) -> None:
    visit(page, "/console#/processing?status=Completed&image=pytorch")
    page.locator("tbody a").first.click()
    expect(page.get_by_role("log")).to_contain_text("prepared")
    visit(page, "/console#/processing?words=churn-0003")
    row = page.locator("tbody tr")
    expect(row).to_contain_text("by LossNotDecreasing")
    row.get_by_role("link").first.click()
    page.get_by_role("link", name="churn-0003", exact=True).click()
    page.get_by_role("link", name="Processing job", exact=True).click()
    expect(page.locator("main")).to_contain_text("The rule LossNotDecreasing judges the training job churn-0003.")


def test_answers_about_all_kinds_are_what_the_openapi_document_says(running: RunningEmulator) -> None:
    document = ask(running, "openapi.json")
    (execution,) = ask(running, "pipeline-executions")["jobs"]
    listed = ask(running, "processing-jobs")["jobs"]
    rule = next(each["name"] for each in listed if each["rule"])
    own = next(each["name"] for each in listed if not each["rule"])
    asked = {
        "processing-jobs": ["processing-jobs", "processing-jobs?status=Completed&limit=3&offset=2"],
        "processing-jobs/{region}/{name}": [f"processing-jobs/{REGION}/{name}" for name in (rule, own)],
        "processing-jobs/{region}/{name}/logs": [f"processing-jobs/{REGION}/{own}/logs"],
        "tuning-jobs": ["tuning-jobs", "tuning-jobs?words=bayesian"],
        "tuning-jobs/{region}/{name}": [f"tuning-jobs/{REGION}/{TUNING}"],
        "pipeline-executions": ["pipeline-executions"],
        "pipeline-executions/{region}/{name}": [f"pipeline-executions/{REGION}/{execution['name']}"],
    }
    kinds = ("processing-jobs", "tuning-jobs", "pipeline-executions")
    assert {each for each in list_described(document) if each.startswith(kinds)} == asked.keys()
    assert find_differences(document, asked, lambda _, address, __: ask(running, address)) == []
    for kind in kinds:
        with pytest.raises(HTTPError, match="404"):
            ask(running, f"{kind}/{REGION}/nobody")
        with pytest.raises(HTTPError, match="400"):
            ask(running, f"{kind}?offset=-1")


def test_the_command_line_lists_all_kinds(running: RunningEmulator) -> None:
    (execution,) = ask(running, "pipeline-executions")["jobs"]
    assert "churn-0225 by LossNotDecreasing" in ask_command(running, "processing")
    listed = json.loads(ask_command(running, "processing", "--status", "Completed", "--json", "-n", "3"))
    assert [each["status"] for each in listed] == ["Completed"] * 3
    rule = next(each["name"] for each in ask(running, "processing-jobs")["jobs"] if each["trainingJob"] == "churn-0225")
    shown = ask_command(running, "processing", rule)
    assert re.match(rf"{rule}  \({REGION}\)\nCompleted\nJudges +churn-0225 by LossNotDecreasing\nImage ", shown)
    (own,) = [each for each in ask(running, "processing-jobs")["jobs"] if not each["rule"]]
    shown_of_own = ask_command(running, "processing", own["name"]).splitlines()
    assert shown_of_own[:2] == [f"{own['name']}  ({REGION})", "Completed"]
    assert shown_of_own[2].split() == ["Image", own["image"]]
    (tuning,) = json.loads(ask_command(running, "tuning", "--json"))
    assert (tuning["name"], tuning["best"]) == (TUNING, 0.2)
    assert "4/6" in ask_command(running, "tuning")
    lines = ask_command(running, "tuning", TUNING).splitlines()
    assert lines[0].split() == ["Trial", "Status", "loss", "learning-rate", "optimizer"]
    assert lines[1].split() == [f"{TUNING}-002", "Completed", "0.2", "0.001", "adam"]
    assert execution["name"] in ask_command(running, "pipelines")
    steps = ask_command(running, "pipelines", execution["name"][:6])
    assert [line.split()[0] for line in steps.splitlines()] == [
        *("Step", "Prepare", "Train", "Check", "Refuse", "TrainAgain")
    ]
    assert "was quick" in steps
    described = json.loads(ask_command(running, "pipelines", execution["name"], "--json"))
    assert described["parameters"] == {"mode": "quick"}
    assert "There is no tuning job nobody: smdebug-emulator tuning lists them." in ask_command(
        running, "tuning", "nobody", code=3
    )


def ask_command(emulator: RunningEmulator, *arguments: str, code: int = 0) -> str:
    folder = ("--state-dir", str(emulator.state_dir))
    done = run_command(*arguments, *folder, code=code, environment={"COLUMNS": "200"})
    return done.stdout if code == 0 else done.stderr


# By day six pages are looked at; by night all of them, wide and narrow.
@pytest.mark.parametrize(
    ("width", "scheme", "by_day"),
    [
        pytest.param(1280, "light", False, marks=pytest.mark.nightly),
        pytest.param(360, "dark", False, marks=pytest.mark.nightly),
        (360, "dark", True),
    ],
)
def test_lists_and_pages_of_all_kinds_are_accessible_and_fit(
    page: Page, running: RunningEmulator, width: int, scheme: Any, by_day: bool
) -> None:
    axe = (install_packages(development=True) / "node_modules" / "axe-core" / "axe.min.js").read_text()
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 800})
    (execution,) = ask(running, "pipeline-executions")["jobs"]
    processing = ask(running, "processing-jobs")["jobs"]
    of_rule, own = (
        next(each["name"] for each in processing if bool(each["rule"]) is is_rule) for is_rule in (True, False)
    )
    many = ",".join(f"{REGION}/churn-{number:04}" for number in range(40))
    views = {
        "jobs?page=2": "tbody tr",
        "jobs?words=nothing-like-it": "text=No job matches.",
        f"jobs/{REGION}/{FAILING}": "[data-last-lines]",
        "processing": "tbody tr",
        "processing?words=nothing-like-it": "text=No processing job matches.",
        f"processing/{REGION}/{of_rule}": "text=Nothing was printed yet.",
        f"processing/{REGION}/{own}": "[role=log]",
        f"jobs/{REGION}/churn-0003/logs": "text=Nothing was printed yet.",
        f"compare?jobs={many}": "main table",
        "tuning": "tbody tr",
        f"tuning/{REGION}/{TUNING}": ".parallel svg",
        "pipelines": "tbody tr",
        f"pipelines/{REGION}/{execution['name']}": ".step",
        **{f"{kind}/{REGION}/nobody": ".problem" for kind in ("processing", "tuning", "pipelines")},
    }
    if by_day:
        views = {address: views[address] for address in views if address.startswith(("jobs/", "tuning/", "pipelines/"))}
    for address, ready in views.items():
        visit(page, f"/console#/{address}")
        expect(page.locator(ready).first).to_be_visible(timeout=PATIENCE_MS)
        assert find_violations(page, axe) == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
