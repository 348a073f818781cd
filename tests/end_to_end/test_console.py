"""Browser tests of the console, on two jobs of one emulator."""

from __future__ import annotations

import json
import marshal
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import numpy as np
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.shared.tensorboard import build_tensorboard
from emulator.console.build import build_console, install_packages
from emulator.stop_handler.deployment import deploy_stop_handler
from sdk_compat.demo.training_job import BUCKET, HEALTHY, SICK, build_request, stage_inputs
from sdk_compat.environment import prepare_environment
from sdk_compat.notebook import TrainingJob
from smdebug.mode_keys import ModeKeys
from smdebug.trials import create_trial
from tests.chromium import find_chromium
from tests.end_to_end.api_answers import find_differences, list_described
from tests.end_to_end.finished_jobs import download_run, wait_until_ended
from tests.end_to_end.profiled_jobs import profile
from tests.unit.smdebug.profiler.profiled_job import write_profiled_job
from tests.unit.smdebug.runs import RunMaker
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

    from tests.running_emulator import RunningEmulator

REGION = "us-east-1"
# A machine at a standstill needs them; each is waited for no longer than it takes.
PATIENCE_MS = 180_000
HOSTILE_KEY = "hostile/<img src=x onerror=document.title='taken'>.html"
HOSTILE_PAGE = (
    "<!doctype html><body onload=\"parent.document.title='taken'\"><script>top.location='/_emulator/docs'</script>"
    "<form action='/_emulator/reset' method=post><button>go</button></form><p>shown</p>"
)
HOSTILE_PATTERN = "<img src=x onerror=document.title='taken'>([0-9]+)"
HOSTILE_SVG = "<svg xmlns='http://www.w3.org/2000/svg' onload='document.title=1'><script>alert(1)</script></svg>"
RIGHT_TO_LEFT = "\u202etxt.<b>bold"


@dataclass
class Console:
    """A page of the console.

    Attributes:
        wrong: what the browser complained of.
    """

    page: Page
    emulator: RunningEmulator
    wrong: list[str] = field(default_factory=list)

    def go(self, address: str) -> Page:
        self.page.goto(f"{self.emulator.endpoint_url}/console#/{address}")
        return self.page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def running(start_emulator: Callable[..., RunningEmulator]) -> RunningEmulator:
    build_console()
    with pytest.MonkeyPatch.context() as patch:
        # The emulator's own command finds it there.
        environment = {**os.environ, "PYTHONPATH": str(build_tensorboard())}
        patch.setattr("sdk_compat.emulator_process._build_environment", lambda: environment)
        emulator = start_emulator("process")
    s3 = emulator.client("s3")
    deploy_stop_handler(emulator.client, "console-watcher", job_name_prefix="console-healthy")
    stage_inputs(s3)
    s3.put_object(Bucket=BUCKET, Key=HOSTILE_KEY, Body=HOSTILE_PAGE, ContentType="text/html")
    s3.put_object(Bucket=BUCKET, Key="hostile/picture.svg", Body=HOSTILE_SVG, ContentType="image/svg+xml")
    s3.put_object(Bucket=BUCKET, Key=f"hostile/{RIGHT_TO_LEFT}.txt", Body="plain & <i>simple</i>")
    return emulator


@pytest.fixture
def console(browser: Browser, running: RunningEmulator) -> Iterator[Console]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE_MS)
    console = Console(context.new_page(), running)

    def note(text: str) -> None:
        # Networks of containers that others start and stop here break a request now and then.
        if "ERR_NETWORK_CHANGED" not in text:
            console.wrong.append(text)

    console.page.on("console", lambda message: note(message.text) if message.type in ("error", "warning") else None)
    console.page.on("pageerror", lambda error: note(str(error)))
    yield console
    context.close()
    assert console.wrong == []


@pytest.fixture(scope="module")
def healthy(running: RunningEmulator) -> str:
    """A job that completes; what it prints is read as metrics."""
    request = profile(build_request("console-healthy", HEALTHY))
    pattern = "train_loss=([0-9.]+)"
    request["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": "train:loss", "Regex": pattern},
        {"Name": "never:found", "Regex": HOSTILE_PATTERN},
    ]
    request["ResourceConfig"]["InstanceType"] = "ml.g5.2xlarge"
    request["TensorBoardOutputConfig"] = {"S3OutputPath": f"s3://{BUCKET}/boards"}
    running.client("sagemaker").create_training_job(**request)
    return "console-healthy"


@pytest.fixture(scope="module")
def ended(running: RunningEmulator, healthy: str) -> str:
    wait_until_ended(running, healthy)
    return healthy


CLASSES = [[5, 1, 0], [0, 4, 2], [0, 0, 4]]
STRANGE_NAME = "gradient/<img src=x onerror=document.title='taken'>\u202egnp"


@pytest.fixture(scope="module")
def strange(running: RunningEmulator, ended: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job that ended elsewhere: classes, importances of features, and tensors that are hard to show."""
    name, folder = "console-strange", tmp_path_factory.mktemp("strange")
    pairs = [
        (label, scored) for label, row in enumerate(CLASSES) for scored, count in enumerate(row) for _ in range(count)
    ]
    classes = {"y": np.array([label for label, _ in pairs]), "scores": np.eye(3)[[scored for _, scored in pairs]]}
    run = RunMaker(folder, with_collections=False)
    run.write_collections({"labels": {"y"}, "predictions": {"scores"}})
    for step in range(6):
        # The features change places, and one of them is used by no tree at first.
        importances = {f"feature_importance/weight/f{at}": np.array([abs(at - step) + 1.0]) for at in range(12)}
        late = {"feature_importance/gain/late": np.array([1.0])} if step > 2 else {}
        odd = {
            "loss": np.float32([1, math.nan, 2, math.inf, 3, -math.inf][step]),
            STRANGE_NAME: np.array([[1.0, math.nan], [math.inf, -1.0]]),
            "words": np.array(["<b>bold</b>", RIGHT_TO_LEFT]),
            "empty": np.zeros((0, 4), np.float32),
        }
        run.write_step(step, {**classes, **importances, **late, **odd})
    run.end()
    watched = tmp_path_factory.mktemp("watched")
    write_profiled_job(watched).end()
    named = "global-1-stepstart-1700000043000000_global-2-stepstart-1700000044000000"
    python = watched / "framework" / "pytorch" / "cprofile" / "0-algo-1" / named / "python_stats"
    python.parent.mkdir(parents=True)
    hostile = ("<img src=x onerror=document.title='taken'>", 1, "<b>bold</b>")
    python.write_bytes(marshal.dumps({hostile: (1, 1, 0.5, 0.5, {})}))
    upload(running, watched, f"profiles/{name}/profiler-output")
    lines = [[1, "<script>document.title='taken'</script>"], [2, RIGHT_TO_LEFT]]
    return take_in(running, ended, name, folder, lines)


def upload(emulator: RunningEmulator, folder: Path, place: str) -> None:
    s3 = emulator.client("s3")
    for path in folder.rglob("*"):
        if path.is_file():
            s3.upload_file(str(path), BUCKET, f"{place}/{path.relative_to(folder)}")


def take_in(emulator: RunningEmulator, ended: str, name: str, run: Path, lines: list[list[Any]]) -> str:
    """Have a job that ran elsewhere, like one that ended here, with a run and a log of its own."""
    upload(emulator, run, f"tensors/{name}/debug-output")
    record = ask_emulator(emulator, "GET", f"jobs/{REGION}/{ended}/record")
    record["job"]["name"] = name
    record["job"]["request"]["TrainingJobName"] = name
    logs = [{"group": "/aws/sagemaker/TrainingJobs", "stream": f"{name}/algo-1-1", "lines": lines}]
    ask_emulator(emulator, "POST", "records", {**record, "evaluations": [], "events": [], "metrics": [], "logs": logs})
    return name


ORIGINAL = "pt_modes"
LOG_LINES, LOG_BYTES = 100_000, 50_000_000


@pytest.fixture(scope="module")
def damaged(running: RunningEmulator, ended: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job with a run of which a later version wrote a part and another part is cut, and with a long log."""
    folder = tmp_path_factory.mktemp("damaged")
    run = RunMaker(folder)
    for step in range(1, 9):
        run.write_step(step, {"loss": np.float32(step), "weight": np.full(4, step, np.float32)})
    run.end()
    index = {int(path.name.partition("_")[0]): path for path in folder.glob("index/*/*.json")}
    later = json.loads(index[2].read_text())
    later["meta"]["mode"] = "WARMUP"
    index[2].write_text(json.dumps(later))
    index[3].write_bytes(index[3].read_bytes()[:-40])
    event_file = folder / json.loads(index[4].read_text())["meta"]["event_file_name"]
    event_file.write_bytes(event_file.read_bytes()[:-60])
    large = json.loads(index[5].read_text())
    large["tensor_payload"][1]["length"] = 2_150_000_000
    index[5].write_text(json.dumps(large))
    filling = "x" * (LOG_BYTES // LOG_LINES)
    lines = [[number, f"{filling} line {number}"] for number in range(LOG_LINES)]
    return take_in(running, ended, "console-damaged", folder, lines)


def ask_emulator(emulator: RunningEmulator, method: str, path: str, body: Any = None) -> dict[str, Any]:
    sent = None if body is None else json.dumps(body).encode()
    request = Request(f"{emulator.endpoint_url}/_emulator/{path}", sent, method=method)
    with urlopen(request, timeout=PATIENCE_MS / 1000) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


@pytest.fixture(scope="module")
def axe() -> str:
    return (install_packages(development=True) / "node_modules" / "axe-core" / "axe.min.js").read_text()


def find_violations(page: Page, axe: str) -> list[tuple[str, list[Any]]]:
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run()).violations")
    return [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found]


def test_a_verdict_shows_and_a_job_is_stopped_without_a_reload(console: Console, healthy: str) -> None:
    page = console.go("jobs")
    expect(page.locator(f"tr[data-job='{healthy}']")).to_be_visible(timeout=PATIENCE_MS)
    page.evaluate("window.neverLoadedAnew = true")
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.locator(f"tr[data-job='{healthy}']")).to_be_visible(timeout=PATIENCE_MS)
    # What happens while a browser is cut off shows when it is back.
    page.context.set_offline(True)
    away = page.get_by_text("The emulator does not answer")
    page.evaluate("window.dispatchEvent(new Event('online'))")  # it tries again, in vain
    expect(away).to_be_visible(timeout=PATIENCE_MS)
    console.emulator.client("sagemaker").create_training_job(**profile(build_request("console-sick", SICK)))
    page.context.set_offline(False)
    expect(away).to_be_hidden(timeout=PATIENCE_MS)
    console.wrong.clear()
    row = page.locator("tr[data-job='console-sick']")
    fired = row.locator("[data-status='IssuesFound']")
    expect(fired).to_contain_text("VanishingGradient", timeout=PATIENCE_MS)
    row.get_by_role("link", name="console-sick").click()
    rule = page.locator("[data-rule='VanishingGradient']")
    expect(rule.locator(".said")).to_contain_text("below threshold 1e-07", timeout=PATIENCE_MS)
    expect(rule.locator("figure canvas")).to_be_visible(timeout=PATIENCE_MS)
    rule.locator("figure summary").click()
    finding = json.loads(
        console.emulator.client("s3")
        .get_object(Bucket=BUCKET, Key="output/console-sick/rule-output/VanishingGradient/report.json")["Body"]
        .read()
    )["Series"][0]
    expect(rule.locator("figure details tbody td")).to_have_text([str_of_js(value) for value in finding["Values"]])
    page.get_by_role("link", name="Profiler", exact=True).click()
    said = page.locator("main [role=status]", has_text="trace event")
    expect(said).to_contain_text("The job is running: this goes on.", timeout=PATIENCE_MS)
    before = said.inner_text()
    expect(said).not_to_have_text(before, timeout=PATIENCE_MS)
    expect(page.locator("figcaption", has_text="Memory (%)")).to_be_visible()
    expect(page.locator("tr[data-process] [data-part=backward]")).to_contain_text("%", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Stop the job").click()
    expect(page.locator(".facts [data-status='Stopped']")).to_be_visible(timeout=PATIENCE_MS)
    assert page.evaluate("window.neverLoadedAnew")
    stopped = other.locator("tr[data-job='console-sick'] [data-status='Stopped']").first
    expect(stopped).to_be_visible(timeout=PATIENCE_MS)


def test_a_tab_that_nobody_sees_leaves_its_connection_to_others(console: Console, ended: str) -> None:
    page = console.page
    with page.expect_request("**/_emulator/stream*"):
        console.go("jobs")
    expect(page.locator(f"tr[data-job='{ended}']")).to_be_visible(timeout=PATIENCE_MS)

    def hide_and_show() -> str:
        with page.expect_event("requestfailed", lambda request: "/stream" in request.url):
            show_or_hide(page, "hidden")
        with page.expect_request("**/_emulator/stream*") as again:
            show_or_hide(page, "visible")
        return again.value.url

    # A stream that was closed before its first event has nothing to continue from.
    wait_until(lambda: "lastEventId=" in hide_and_show())


def show_or_hide(page: Page, state: str) -> None:
    """Have the page believe that somebody looks at it, or nobody."""
    page.evaluate(
        "state => { Object.defineProperty(document, 'visibilityState', { get: () => state, configurable: true });"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        state,
    )


def str_of_js(number: float) -> str:
    """A number as JavaScript writes it."""
    text = repr(float(number))
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        return text.removesuffix(".0")
    return f"{mantissa.removesuffix('.0')}e{'-' if exponent.startswith('-') else '+'}{int(exponent.lstrip('+-'))}"


def test_plotted_values_are_the_trial_s(console: Console, ended: str, tmp_path: Path) -> None:
    trial = create_trial(str(download_run(console.emulator, BUCKET, ended, tmp_path)))
    page = console.go(f"jobs/{REGION}/{ended}/tensors")
    tensor = trial.tensor_names(collection="losses")[0]
    expect(page.get_by_role("checkbox", name=tensor)).to_be_checked(timeout=PATIENCE_MS)
    page.locator("figure summary").click()
    expected = {str(step): trial.tensor(tensor).value(step).item() for step in trial.tensor(tensor).steps()}
    rows = page.locator("figure details tbody tr")
    expect(rows).to_have_count(len(expected), timeout=PATIENCE_MS)
    # Training and evaluation each have a column, and a line.
    shown = {row.locator("th").inner_text(): float("".join(row.locator("td").all_inner_texts())) for row in rows.all()}
    assert shown == expected

    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    rows_of_csv = [line.split(",") for line in download.value.path().read_text().splitlines()]
    assert rows_of_csv[0][0] == "global step"
    assert {row[0]: float("".join(row[1:])) for row in rows_of_csv[1:]} == expected
    with page.expect_download() as download:
        page.get_by_role("button", name="PNG").click()
    assert download.value.path().read_bytes().startswith(b"\x89PNG")
    scale = page.get_by_role("button", name="Log scale")
    before = page.locator("figure canvas").screenshot()
    scale.click()
    expect(scale).to_have_attribute("aria-pressed", "true")
    logarithmic = page.locator("figure canvas").screenshot()
    page.get_by_label("Smoothing").fill("0.9")
    assert len({before, logarithmic, page.locator("figure canvas").screenshot()}) == 3

    gradient = next(name for name in trial.tensor_names(collection="gradients") if name.endswith("weight"))
    page.get_by_label("Search tensors").fill(gradient)
    page.get_by_role("checkbox", name=gradient, exact=True).check()
    for kind, said in (("histogram", "share of values"), ("heat map", "gradients: abs_mean"), ("values", "Values")):
        page.get_by_role("button", name=kind, exact=True).click()
        expect(page.locator("figcaption", has_text=said)).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("dl.pairs")).to_contain_text("float32")
    page.get_by_role("button", name="confusion").click()
    expect(page.locator(".problem")).to_contain_text("labels and predictions")


def test_classes_importances_and_strange_tensors_are_shown(console: Console, strange: str, axe: str) -> None:
    console.page.set_viewport_size({"width": 360, "height": 800})
    page = console.go(f"jobs/{REGION}/{strange}/tensors")
    expect(page.get_by_text("3 values are no finite numbers, the first at step 1.")).to_be_visible(timeout=PATIENCE_MS)

    page.get_by_role("button", name="confusion").click()
    expect(page.locator("figcaption", has_text="Labels \u00d7 predictions at step 5")).to_be_visible(
        timeout=PATIENCE_MS
    )
    cells = page.locator(".numbers tbody tr")
    assert [[int(cell) for cell in row.locator("td").all_inner_texts()] for row in cells.all()] == CLASSES
    assert find_violations(page, axe) == []

    page.get_by_role("button", name="importance").click()
    page.locator("label", has_text="By ").locator("select").select_option("weight")
    expect(page.locator("figcaption", has_text="Features \u00d7 rounds by weight")).to_be_visible(timeout=PATIENCE_MS)
    # By the last round: f11 is 7, f10 and f0 are 6.
    expect(page.locator(".names bdi").first).to_have_text("f11")
    page.locator("figure summary").click()
    expect(page.locator("figure details thead th").nth(1)).to_have_text("f11")
    assert page.locator("figure details thead th").all_inner_texts()[1:3] == ["f11", "f0"]
    rounds = page.locator("figure details tbody tr")
    assert [float(row.locator("td").first.inner_text()) for row in rounds.all()] == [12, 11, 10, 9, 8, 7]
    assert find_violations(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360

    page.get_by_role("button", name="values", exact=True).click()
    for tensor, said in (("words", "<b>bold</b>"), ("empty", "0 \u00d7 4"), (STRANGE_NAME, "NaN")):
        page.get_by_label("Search tensors").fill(tensor)
        page.get_by_role("checkbox", name=tensor, exact=True).check()
        expect(page.locator(".main h2")).to_have_text(tensor, timeout=PATIENCE_MS)
        expect(page.locator(".main")).to_contain_text(said)
    page.get_by_role("button", name="histogram").click()
    expect(page.locator("figcaption", has_text="share of values")).to_contain_text(STRANGE_NAME, timeout=PATIENCE_MS)
    console.go(f"jobs/{REGION}/{strange}/logs")
    expect(page.get_by_role("log")).to_contain_text("<script>document.title='taken'</script>", timeout=PATIENCE_MS)
    assert page.locator("main img, main b, main script").count() == 0
    assert page.title().startswith(strange)


LAYERS = [f"net.{layer}" for layer in range(502)]


@pytest.fixture(scope="module")
def deep(running: RunningEmulator, ended: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job of two workers and three epochs; of 502 layers, whose gradients are written from the last to the first."""
    folder = tmp_path_factory.mktemp("deep")
    run = RunMaker(folder, workers=2)
    counts = {ModeKeys.TRAIN: 0, ModeKeys.EVAL: 0}
    gradients = {f"gradient/{name}": np.float32(10.0 ** -(501 - layer)) for layer, name in enumerate(LAYERS)}
    for step, mode in enumerate([ModeKeys.TRAIN, ModeKeys.TRAIN, ModeKeys.EVAL] * 3):
        for rank, worker in enumerate(run.workers):
            loss = np.float32(step + 100 * rank + (1000 if mode is ModeKeys.EVAL else 0))
            tensors = {"loss": loss, **(dict(reversed(gradients.items())) if mode is ModeKeys.TRAIN else {})}
            run.write_step(step, tensors, mode, counts[mode], worker)
        counts[mode] += 1
    run.end()
    return take_in(running, ended, "console-deep", folder, [[1, "deep"]])


def test_each_mode_and_worker_has_a_line_with_its_name(console: Console, ended: str, deep: str, axe: str) -> None:
    page = console.go(f"jobs/{REGION}/{deep}/tensors")
    named = [f"loss ({mode}, worker_{rank})" for mode in ("TRAIN", "EVAL") for rank in (0, 1)]
    page.locator("figure summary").click(timeout=PATIENCE_MS)
    heads = page.locator("figure details thead th")
    expect(heads).to_have_text(["global step", *named], timeout=PATIENCE_MS)
    assert [text for text in page.locator(".u-legend .u-label").all_inner_texts() if "loss" in text] == named
    columns = page.locator("figure details tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert columns[2] == ["2", "", "", "1002", "1102"]
    page.locator("label", has_text=re.compile("^Worker ")).locator("select").select_option("worker_1")
    expect(heads).to_have_text(["global step", "loss (TRAIN)", "loss (EVAL)"], timeout=PATIENCE_MS)
    page.locator("label", has_text=re.compile("^Mode ")).locator("select").select_option("EVAL")
    expect(heads).to_have_text(["global step", "loss"], timeout=PATIENCE_MS)
    assert find_violations(page, axe) == []
    console.go(f"compare?jobs={REGION}/{ended},{REGION}/{deep}")
    first = page.locator("figcaption").first.inner_text(timeout=PATIENCE_MS)
    page.locator("label", has_text=re.compile("^Show ")).locator("select").select_option("tensor loss")
    expect(page.locator("figcaption")).to_have_text([first, "loss"], timeout=PATIENCE_MS)
    page.get_by_role("button", name=f"Remove {first}").click()
    # The picture of what was shown first goes.
    expect(page.locator("figcaption")).to_have_text(["loss"], timeout=PATIENCE_MS)
    page.locator("figure summary").click(timeout=PATIENCE_MS)
    expect(heads).to_have_text(["global step", *(name.replace("loss", deep) for name in named)], timeout=PATIENCE_MS)


def test_who_points_at_the_tab_has_the_run_opened(console: Console, deep: str) -> None:
    page = console.go(f"jobs/{REGION}/{deep}")
    tab = page.get_by_role("link", name="Tensors", exact=True)
    expect(tab).to_be_visible(timeout=PATIENCE_MS)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/tensors") else None)
    tab.evaluate("link => { link.dispatchEvent(new PointerEvent('pointerenter')); link.click(); }")
    expect(page.locator("figure canvas").first).to_be_visible(timeout=PATIENCE_MS)
    assert len(asked) == 1


def test_a_heat_map_shows_all_layers_in_their_order(console: Console, deep: str, axe: str) -> None:
    page = console.go(f"jobs/{REGION}/{deep}/tensors")
    page.get_by_role("button", name="heat map").click(timeout=PATIENCE_MS)
    canvas = page.locator("canvas.grid")
    expect(canvas).to_have_attribute("height", "502", timeout=PATIENCE_MS)
    titles = page.locator(".names bdi").evaluate_all("labels => labels.map((label) => label.title)")
    numbers = [int(title.removeprefix("gradient/net.")) for title in titles]
    assert numbers[0] == 0
    assert numbers == sorted(numbers)
    assert len(numbers) > 40
    assert find_violations(page, axe) == []
    canvas.focus()
    for key, said in (
        ("End", "net.501, step 0: 1"),
        ("PageUp", "net.481"),
        ("Home", "net.0, step 0: 0"),
        ("ArrowDown", "net.1"),
    ):
        page.keyboard.press(key)
        expect(page.locator("output")).to_contain_text(f"gradient/{said}")
        expect(page.locator(".tip")).to_contain_text(f"gradient/{said.partition(',')[0]}")
    page.get_by_label("Filter rows").fill("NET.50")
    expect(page.locator("figcaption")).to_contain_text("3 of 502 tensors")
    expect(page.locator(".names bdi")).to_have_text(["gradient/net.50", "gradient/net.500", "gradient/net.501"])
    page.get_by_label("Filter rows").fill("nothing")
    expect(page.locator("output")).to_have_text("There are no numbers to show.")


def test_what_the_profiler_saw(console: Console, ended: str) -> None:
    page = console.go(f"jobs/{REGION}/{ended}/profiler")
    row = page.locator("tr[data-process]")
    expect(row).to_have_count(1, timeout=PATIENCE_MS)
    known = ask_emulator(console.emulator, "GET", f"jobs/{REGION}/{ended}/profile")
    # In a terminal it is said in the same numbers.
    said = json.loads(run_command(console, "profile", ended, "--json"))
    assert (said["usage"], said["time"]) == (known["usage"], known["time"])
    (time,) = known["time"]
    assert time["steps"] >= 300
    assert "Median step" in run_command(console, "profile", ended)
    assert row.locator("td").first.inner_text() == str(time["steps"])
    shares = [row.locator(f"[data-part={part}]").inner_text() for part in ("forward", "backward", "other")]
    assert [text.partition("(")[2] for text in shares] == [
        f"{100 * time[part] / time['seconds']:.0f} %)" for part in ("forward", "backward", "other")
    ]
    for figure in ("Processor", "Memory", "I/O (MB/s)", "Network", "Duration of steps", "Steps of"):
        expect(page.locator("figcaption", has_text=figure)).to_be_visible(timeout=PATIENCE_MS)
    memory = page.locator("figure", has=page.locator("figcaption", has_text="Memory"))
    (line,) = (each for each in known["lines"] if each["figure"] == "Memory")
    memory.locator("summary").click()
    expect(memory.locator("details tbody tr")).to_have_count(len(line["times"]), timeout=PATIENCE_MS)
    shown = [float(text) for text in memory.locator("details tbody td").all_inner_texts() if text != "nothing"]
    assert shown == [value for value in line["mean"] if value is not None]

    flames = page.locator("canvas.flames")
    expect(flames).to_be_visible(timeout=PATIENCE_MS)
    flames.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("figure:has(canvas.flames) output")).to_contain_text("% of all")
    longest = page.locator("output", has_text="% of all").inner_text().partition(" (")[0]
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Show all")).to_be_enabled()
    drawn = ask_emulator(
        console.emulator, "GET", f"jobs/{REGION}/{ended}/profile/flame-graph?process={time['process']}"
    )
    assert drawn["profiles"] >= 6, "three steps, each in two"
    assert drawn["tree"]["children"][0]["name"] == longest

    frame = page.locator("iframe[title=ProfilerReport]")
    expect(frame).to_be_attached(timeout=PATIENCE_MS)
    assert frame.get_attribute("sandbox") == ""
    report = page.frame_locator("iframe[title=ProfilerReport]")
    expect(report.get_by_role("heading", name="Training job summary")).to_be_visible(timeout=PATIENCE_MS)
    expect(report.get_by_text("The job has ended.")).to_be_visible()
    expect(page.locator("li [data-status=NoIssuesFound]")).to_contain_text("Report-1")


def test_two_hosts_with_gpus_and_hostile_names_are_profiled(console: Console, strange: str, axe: str) -> None:
    console.page.set_viewport_size({"width": 360, "height": 800})
    page = console.go(f"jobs/{REGION}/{strange}/profiler")
    expect(page.locator("figcaption", has_text="GPU (%)")).to_be_visible(timeout=PATIENCE_MS)
    row = page.locator("tr[data-process='0-algo-1']")
    expect(row.locator("[data-part=forward]")).to_have_text("1.0 s (25 %)")
    expect(row.locator("[data-part=data_loading]")).to_contain_text("0.5 s")
    expect(page.locator("figcaption", has_text="Steps of 1-algo-2")).to_be_visible()
    page.locator("figure:has(canvas.flames)").scroll_into_view_if_needed()
    page.locator("canvas.flames").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("figure:has(canvas.flames) output")).to_contain_text("<b>bold</b> (<img src=x onerror")
    assert find_violations(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("main img, main b, main script").count() == 0
    assert page.title().startswith(strange)


def test_a_rule_is_tried_with_other_parameters(console: Console, ended: str) -> None:
    page = console.go(f"jobs/{REGION}/{ended}")
    rule = page.locator("[data-rule='VanishingGradient']")
    rule.get_by_text("Try other parameters").click()
    rule.locator("input[name=threshold]").fill("1000")
    rule.get_by_role("button", name="Try", exact=True).click()
    expect(rule.locator("h4 [data-status='IssuesFound']")).to_be_visible(timeout=PATIENCE_MS)
    expect(rule.locator("details figcaption", has_text="VanishingGradient, tried")).to_be_visible()
    # The job's own verdict stays.
    expect(rule.locator("h3 [data-status='NoIssuesFound']")).to_be_visible()


def test_jobs_are_compared_logs_searched_and_links_followed(console: Console, ended: str) -> None:
    page = console.go("jobs")
    for label, chosen, other in (("Rule verdict", "IssuesFound", ended), ("Status", "Completed", "console-sick")):
        page.locator("label", has_text=label).locator("select").select_option(chosen)
        expect(page.locator(f"tr[data-job='{other}']")).to_have_count(0, timeout=PATIENCE_MS)
        expect(page.locator("tbody tr")).not_to_have_count(0, timeout=PATIENCE_MS)
        page.locator("label", has_text=label).locator("select").select_option("")
    for name in (ended, "console-sick"):
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("link", name="Compare 2").click()
    expect(page.locator("figure canvas")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("region", name="What differs")).to_contain_text("sigmoid")
    show = page.locator("label", has_text=re.compile("^Show ")).locator("select")
    first = page.locator("figcaption").first.inner_text()
    show.select_option("metric train:loss")
    expect(page.locator("figcaption")).to_have_text([first, "train:loss"], timeout=PATIENCE_MS)
    expect(page.get_by_role("rowheader", name="train:loss, last")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name=f"Remove {first}").click()
    page.locator("label", has_text=re.compile("^Layout ")).locator("select").select_option("")
    expect(page.locator("figcaption")).to_have_text([f"{ended}: train:loss"], timeout=PATIENCE_MS)
    page.locator("label", has_text=re.compile("^Hyperparameters ")).locator("select").select_option("all")
    expect(page.get_by_role("rowheader", name="sagemaker_program")).to_be_visible(timeout=PATIENCE_MS)
    page.reload()
    expect(page.locator("figcaption")).to_have_text([f"{ended}: train:loss"], timeout=PATIENCE_MS)
    expect(page.get_by_role("rowheader", name="sagemaker_program")).to_be_visible(timeout=PATIENCE_MS)

    console.go(f"jobs/{REGION}/{ended}/tensors")
    page.get_by_role("button", name="heat map").click()
    expect(page).to_have_url(re.compile(r"/tensors\?picture=heat\+map$"), timeout=PATIENCE_MS)
    page.reload()
    expect(page.get_by_role("button", name="heat map")).to_have_attribute("aria-pressed", "true", timeout=PATIENCE_MS)

    console.go(f"jobs/{REGION}/{ended}/logs")
    expect(page.get_by_role("log")).to_contain_text("test_accuracy=", timeout=PATIENCE_MS)
    page.get_by_label("Search the log").fill("step=200")
    expect(page.locator(".line")).to_have_count(1, timeout=PATIENCE_MS)

    console.go(f"jobs/{REGION}/{ended}/metrics")
    for measured in ("CPUUtilization", "MemoryUtilization", "DiskUtilization"):
        expect(page.locator("figcaption", has_text=measured)).to_be_visible(timeout=PATIENCE_MS)
    expect(page.locator("figcaption", has_text="loss").first).to_be_visible()

    console.go(f"jobs/{REGION}/{ended}")
    page.get_by_role("link", name=f"s3://{BUCKET}/output/{ended}/output/model.tar.gz").click()
    expect(page.get_by_role("rowheader", name="model.pt")).to_be_visible(timeout=PATIENCE_MS)

    console.go("events")
    page.locator("summary").first.click()
    expect(page.locator("pre").first).to_contain_text('"detail-type"')


def test_a_note_and_tags_are_kept(console: Console, ended: str) -> None:
    page = console.go(f"jobs/{REGION}/{ended}")
    page.get_by_label("Note", exact=True).fill("the baseline")
    page.get_by_role("button", name="Save the note").click()
    expect(page.get_by_text("Saved.")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_label("Tag", exact=True).fill("team")
    page.get_by_label("Value", exact=True).fill("vision")
    page.get_by_role("button", name="Set the tag").click()
    expect(page.get_by_role("button", name="Remove the tag team")).to_be_visible(timeout=PATIENCE_MS)
    page.reload()
    expect(page.get_by_label("Note", exact=True)).to_have_value("the baseline", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Remove the tag team").click()
    expect(page.get_by_role("button", name="Remove the tag team")).to_have_count(0, timeout=PATIENCE_MS)


def test_warnings_are_marked_in_the_list_and_shown_on_every_tab(console: Console, ended: str) -> None:
    page = console.go("jobs")
    row = page.locator(f"tr[data-job='{ended}']")
    # A busy machine adds that the training was starved.
    expect(row.locator(".warned")).to_contain_text(re.compile("[23] warnings"), timeout=PATIENCE_MS)
    expect(row).to_contain_text("ml.g5.2xlarge: no GPU here")
    for tab in ("", "/logs", "/configuration"):
        console.go(f"jobs/{REGION}/{ended}{tab}")
        block = page.get_by_role("region", name="Warnings")
        expect(block.locator("[data-warning='NoGpu']")).to_contain_text(
            "ml.g5.2xlarge: no GPU here", timeout=PATIENCE_MS
        )
        metric = block.locator("[data-warning='MetricNeverMatched']")
        expect(metric).to_contain_text("The metric 'never:found' has no value")
        expect(metric).to_contain_text("<img src=x")
    assert page.title() != "taken"


def test_hostile_objects_are_shown_and_do_nothing(console: Console) -> None:
    page = console.go("s3/" + quote(f"{BUCKET}/{HOSTILE_KEY}"))
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("shown")).to_be_visible(timeout=PATIENCE_MS)
    assert page.locator("iframe").get_attribute("sandbox") == ""
    assert page.title().startswith(f"{BUCKET}/hostile/<img")
    assert page.locator("main img").count() == 0
    # What the frame's policy refused is all that the browser has to say.
    assert console.wrong
    assert all("sandbox" in text or "Content Security Policy" in text for text in console.wrong)
    console.wrong.clear()

    console.go(f"s3/{BUCKET}/hostile/picture.svg")
    expect(page.locator("img.preview")).to_be_attached()
    console.go("s3/" + quote(f"{BUCKET}/hostile/{RIGHT_TO_LEFT}.txt"))
    expect(page.locator("pre")).to_have_text("plain & <i>simple</i>", timeout=PATIENCE_MS)
    assert page.locator(".crumbs bdi").last.inner_text() == f"{RIGHT_TO_LEFT}.txt"
    # Opened by itself it is as inert.
    answer = page.goto(f"{console.emulator.endpoint_url}/_emulator/s3/{BUCKET}/object?key={quote(HOSTILE_KEY)}")
    assert answer is not None
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    expect(page.get_by_text("shown")).to_be_visible()
    console.wrong.clear()


def test_everything_is_reached_by_the_keyboard(console: Console, ended: str) -> None:
    page = console.go("jobs")
    expect(page.get_by_role("link", name=ended)).to_be_visible(timeout=PATIENCE_MS)
    for name in (ended, "console-sick"):
        press_until(page, f"document.activeElement.ariaLabel === 'Compare {name}'")
        page.keyboard.press("Space")
    press_until(page, "document.activeElement.textContent === 'Compare 2 jobs'")
    page.keyboard.press("Enter")
    expect(page.locator("figure canvas")).to_be_visible(timeout=PATIENCE_MS)
    press_until(page, "document.activeElement.textContent === 'Jobs'")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name=ended)).to_be_visible(timeout=PATIENCE_MS)
    page.keyboard.press("/")
    page.keyboard.type("healthy")
    expect(page.locator("tbody tr")).to_have_count(1, timeout=PATIENCE_MS)
    press_until(page, f"document.activeElement.textContent === {json.dumps(ended)}")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(ended)
    press_until(page, "document.activeElement.textContent === 'Tensors'")
    page.keyboard.press("Enter")
    press_until(page, "document.activeElement.textContent === 'heat map'")
    page.keyboard.press("Enter")
    expect(page.locator("canvas.grid")).to_be_visible(timeout=PATIENCE_MS)
    press_until(page, "document.activeElement.className === 'grid'")
    page.keyboard.press("ArrowRight")
    expect(page.locator("output")).to_contain_text("step")


def press_until(page: Page, condition: str) -> None:
    """Press the tabulator until something has the focus; a page is as long as a hundred presses at most."""
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate(condition):
            return
    raise AssertionError(f"nothing was reached of which {condition}")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_every_view_is_accessible_and_fits(
    console: Console, ended: str, deep: str, strange: str, axe: str, width: int, scheme: Any
) -> None:
    page = console.page
    many = ",".join(f"{REGION}/{name}" for name in (ended, "console-sick", deep, strange))
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": width, "height": 800})
    job = f"jobs/{REGION}/{ended}"
    views = {
        "jobs": "tbody tr",
        job: "[data-rule] h3",
        f"{job}/metrics": "figure canvas",
        f"{job}/logs": ".line",
        f"{job}/tensors": "figure canvas",
        f"{job}/profiler": "canvas.flames",
        f"{job}/configuration": "pre",
        f"compare?jobs={REGION}/{ended},{REGION}/console-sick": "figure canvas",
        f"compare?jobs={many}": "figure canvas",
        "s3": "ul.plain a",
        f"s3/{BUCKET}/output/": "tbody tr",
        f"s3/{BUCKET}/output/{ended}/output/model.tar.gz": "tbody tr",
        f"s3/{BUCKET}/output/{ended}/rule-output/VanishingGradient/report.json": "pre",
        f"s3/{BUCKET}/output/{ended}/rule-output/VanishingGradient/plot.svg": "img.preview",
        "events": ".timeline summary",
        f"jobs/{REGION}/nobody": ".problem",
    }
    for address, ready in views.items():
        console.go(address)
        expect(page.locator(ready).first).to_be_visible(timeout=PATIENCE_MS)
        assert find_violations(page, axe) == [], address
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    console.go(f"{job}/tensors")
    for kind, ready in (("histogram", "canvas.grid"), ("heat map", "canvas.grid"), ("values", "dl.pairs")):
        page.get_by_role("button", name=kind, exact=True).click()
        expect(page.locator(ready).first).to_be_visible(timeout=PATIENCE_MS)
        assert find_violations(page, axe) == [], kind
        assert page.evaluate("document.documentElement.scrollWidth") <= width, kind
    # The browser says that one job was not found.
    console.wrong[:] = [text for text in console.wrong if "404" not in text]


def test_a_job_is_copied_as_calls_that_create_it(console: Console, ended: str, tmp_path: Path) -> None:
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
    for what, command in commands.items():
        page.get_by_role("button", name=f"Copy as {what}").click()
        expect(page.get_by_text(f"Copied as {what}.")).to_be_visible(timeout=PATIENCE_MS)
        copied = page.evaluate("navigator.clipboard.readText()").replace(
            f"{ended}-again", f"{ended}-{what[:3].lower()}"
        )
        done = subprocess.run(
            [part.replace("{}", copied) for part in command],
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


def test_tensorboard_starts_and_a_function_s_log_is_in_the_timeline(console: Console, ended: str) -> None:
    page = console.go(f"jobs/{REGION}/{ended}")
    page.get_by_role("button", name="Start TensorBoard").click()
    event = page.locator(".timeline details", has_text="1 target").first
    event.locator("summary").click()
    expect(event.locator(".delivery")).to_contain_text("console-watcher")
    expect(event.locator(".delivery")).to_contain_text('"Stopped":')
    event.get_by_role("button", name="Log of the function").click()
    expect(event.locator(".delivery pre").last).to_contain_text("START RequestId: ", timeout=PATIENCE_MS)
    expect(event.locator(".delivery pre").last).to_contain_text("REPORT RequestId: ")

    link = page.locator("a[target=_blank]")
    expect(link).to_be_visible(timeout=PATIENCE_MS)

    def read_runs() -> dict[str, Any]:
        with urlopen(f"{link.get_attribute('href')}data/plugin/scalars/tags", timeout=PATIENCE_MS / 1000) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    assert wait_until(read_runs, "the job's scalars in TensorBoard")


def test_what_another_version_wrote_or_is_damaged_is_named_and_a_long_log_read(console: Console, damaged: str) -> None:
    page = console.go(f"jobs/{REGION}/{damaged}/tensors")
    named = page.locator("[role=status] .problem")
    expect(named).to_contain_text("KeyError: 'WARMUP'", timeout=PATIENCE_MS)
    for step in (2, 3):
        expect(named).to_contain_text(f"The data of worker worker_0 at step {step} is lost")
    page.locator("figure summary").click()
    rows = page.locator("figure details tbody tr")
    expect(rows).to_have_count(6, timeout=PATIENCE_MS)
    assert rows.locator("td").all_inner_texts() == ["1", "4", "5", "6", "7", "8"]
    page.get_by_label("Search tensors").fill("weight")
    page.get_by_role("checkbox", name="weight", exact=True).check()
    note = page.locator("[data-note]")
    expect(note).to_contain_text("weight: 2 values are too large to be read, or damaged", timeout=PATIENCE_MS)
    page.get_by_role("button", name="values", exact=True).click()
    for step, said in ((5, "Its value takes 2.1 GB; values of up to 256 MB are shown."), (4, "is damaged")):
        page.get_by_label("Step", exact=True).fill(str(step))
        page.get_by_label("Step", exact=True).press("Enter")
        expect(page.locator(".main .problem")).to_contain_text(said, timeout=PATIENCE_MS)
    console.wrong[:] = [text for text in console.wrong if "422" not in text and "404" not in text]

    console.go(f"jobs/{REGION}/{damaged}/logs")
    log = page.get_by_role("log")
    expect(log).to_contain_text(f"line {LOG_LINES - 1}", timeout=PATIENCE_MS)
    expect(page.locator(".line")).to_have_count(500)
    page.get_by_role("button", name="Earlier lines").click()
    expect(page.locator(".line")).to_have_count(1000, timeout=PATIENCE_MS)
    page.get_by_label("Search the log").fill("line 17777")
    expect(page.locator(".line")).to_have_count(1, timeout=PATIENCE_MS)


def test_a_run_that_the_original_wrote_is_shown(
    console: Console, ended: str, recorded_runs: Path, tmp_path: Path
) -> None:
    run = recorded_runs / ORIGINAL / "run"
    take_in(console.emulator, ended, "console-original", run, [[1, "said"]])
    page = console.go(f"jobs/{REGION}/console-original/tensors")
    trial = create_trial(str(run))
    chosen = page.locator("input[type=checkbox]:checked").first
    expect(chosen).to_be_attached(timeout=PATIENCE_MS)
    tensor = trial.tensor(str(chosen.get_attribute("value")))
    page.locator("figure summary").click()
    rows = page.locator("figure details tbody tr")
    expect(rows).to_have_count(len(tensor.steps()), timeout=PATIENCE_MS)
    assert [float("".join(row.locator("td").all_inner_texts())) for row in rows.all()] == [
        float(np.mean(tensor.value(step), dtype=np.float64)) for step in tensor.steps()
    ]


def run_command(console: Console, *arguments: str) -> str:
    command = [sys.executable, "-P", "-m", "emulator", *arguments, "--state-dir", str(console.emulator.state_dir)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_MS / 1000)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


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
        "jobs/{region}/{name}/tensorboard": [f"{job}/tensorboard"],
        "s3": ["s3"],
        "s3/{bucket}": [f"s3/{bucket}", f"s3/{bucket}?prefix={model.rpartition('/')[0]}/"],
        "s3/{bucket}/archive": [f"s3/{bucket}/archive?key={quote(model)}"],
        "events": ["events", "events?limit=1000"],
    }
    of_other_kinds = ("processing-jobs", "tuning-jobs", "pipeline-executions")
    described = {each for each in list_described(document) if not each.startswith(of_other_kinds)}
    assert described == asked.keys()
    assert find_differences(document, asked, lambda *question: ask_emulator(running, *question)) == []


def test_a_notebook_shows_a_job_with_the_plots_of_its_rules(console: Console, ended: str) -> None:
    console.page.set_content(TrainingJob(ended, console.emulator.endpoint_url)._repr_html_())
    expect(console.page.get_by_role("link", name=ended)).to_be_visible()
    expect(console.page.get_by_text("ml.g5.2xlarge: no GPU here")).to_be_visible()
    assert console.page.locator("img").evaluate_all("images => images.every(each => each.naturalWidth > 100)")
    assert console.page.locator("img").count() >= 2


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


def test_the_page_goes_on_when_the_emulator_comes_back(
    console: Console, ended: str, start_emulator: Callable[..., RunningEmulator]
) -> None:
    page = console.go("jobs")
    expect(page.locator("tbody tr").first).to_be_visible(timeout=PATIENCE_MS)
    state_dir, port = console.emulator.state_dir, int(console.emulator.endpoint_url.rpartition(":")[2])
    assert console.emulator.stop() == 0
    expect(page.get_by_text("The emulator does not answer")).to_be_visible(timeout=PATIENCE_MS)
    again = start_emulator("process", state_dir=state_dir, port=port)
    expect(page.get_by_text("The emulator does not answer")).to_be_hidden(timeout=PATIENCE_MS)
    again.client("sagemaker").delete_training_job(TrainingJobName="console-sick")
    again.client("sagemaker").create_training_job(**build_request("console-later", HEALTHY))
    expect(page.locator("tr[data-job='console-later']")).to_be_visible(timeout=PATIENCE_MS)
    page.close()
    console.wrong.clear()  # of the time in which nobody answered
    assert again.stop() == 0
