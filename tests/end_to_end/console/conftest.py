"""Emulator, browser and jobs that the console's tests share."""

import json
import marshal
import math
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, expect

from benchmarks.shared.tensorboard import locate_tensorboard
from emulator.console.build import build_console, install_packages
from emulator.stop_handler.deployment import deploy_stop_handler
from sdk_compat.demo.training_job import (
    BUCKET,
    HEALTHY,
    build_request,
    build_script_mode,
    locate_source,
    stage_digits,
    stage_source,
)
from smdebug.mode_keys import ModeKeys
from tests.chromium import opened_chromium
from tests.end_to_end.console.endless_job import NAME, build_endless_request, stage_endless_script
from tests.end_to_end.console.jobs_from_elsewhere import (
    CLASSES,
    LAYERS,
    LOG_BYTES,
    LOG_LINES,
    STRANGE_NAME,
    import_run,
    upload,
)
from tests.end_to_end.console.page import HOSTILE_KEY, PATIENCE_MS, RIGHT_TO_LEFT, Console
from tests.end_to_end.finished_jobs import wait_until_ended
from tests.end_to_end.profiled_jobs import profile
from tests.running_emulator import RunningEmulator
from tests.unit.smdebug.profiler.profiled_job import write_profiled_job
from tests.unit.smdebug.runs import RunMaker
from tests.waiting import wait_until

HEALTHY_SCRIPT = "healthy_training.py"
HOSTILE_PAGE = (
    "<!doctype html><body onload=\"parent.document.title='taken'\"><script>top.location='/_emulator/docs'</script>"
    "<form action='/_emulator/reset' method=post><button>go</button></form><p>shown</p>"
)
HOSTILE_PATTERN = "<img src=x onerror=document.title='taken'>([0-9]+)"
HOSTILE_SVG = "<svg xmlns='http://www.w3.org/2000/svg' onload='document.title=1'><script>alert(1)</script></svg>"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with opened_chromium() as opened:
        expect.set_options(timeout=PATIENCE_MS)
        yield opened


@pytest.fixture(scope="package")
def running(
    start_emulator: Callable[..., RunningEmulator], tmp_path_factory: pytest.TempPathFactory
) -> RunningEmulator:
    build_console()
    with pytest.MonkeyPatch.context() as patch:
        # The emulator's own command finds it there, once the test of TensorBoard has built it.
        path = os.pathsep.join(filter(None, [str(locate_tensorboard()), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, "PYTHONPATH": path}
        patch.setattr("sdk_compat.emulator_process._build_environment", lambda: environment)
        emulator = start_emulator("process", warm=False)
    s3 = emulator.client("s3")
    deploy_stop_handler(emulator.client, "console-watcher", job_name_prefix="console-healthy")
    stage_digits(s3)
    stage_source(s3, "healthy", [Path(__file__).with_name(HEALTHY_SCRIPT)])
    stage_endless_script(s3)
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
            console.complaints.append(text)

    console.page.on("console", lambda message: note(message.text) if message.type in ("error", "warning") else None)
    console.page.on("pageerror", lambda error: note(str(error)))
    yield console
    context.close()
    assert console.complaints == []


@pytest.fixture(scope="package")
def healthy(running: RunningEmulator) -> str:
    """A job that completes; what it prints is read as metrics."""
    request = profile(build_request("console-healthy", {}))
    request["HyperParameters"] = build_script_mode(locate_source("healthy"), HEALTHY_SCRIPT, HEALTHY)
    collections = ("weights", r"^layer"), ("gradients", "^gradient"), ("losses", "loss")
    for collection, (name, regex) in zip(
        request["DebugHookConfig"]["CollectionConfigurations"], collections, strict=True
    ):
        assert collection["CollectionName"] == name
        collection["CollectionParameters"]["include_regex"] = regex
    del request["DebugRuleConfigurations"][1:]
    pattern = "train_loss=([0-9.]+)"
    request["AlgorithmSpecification"]["MetricDefinitions"] = [
        {"Name": "train:loss", "Regex": pattern},
        {"Name": "never:found", "Regex": HOSTILE_PATTERN},
    ]
    request["ResourceConfig"]["InstanceType"] = "ml.g5.2xlarge"
    request["TensorBoardOutputConfig"] = {"S3OutputPath": f"s3://{BUCKET}/boards"}
    running.client("sagemaker").create_training_job(**request)
    return "console-healthy"


@pytest.fixture(scope="package")
def ended(running: RunningEmulator, healthy: str) -> str:
    wait_until_ended(running, healthy)
    return healthy


@pytest.fixture(scope="package")
def stopped(running: RunningEmulator) -> str:
    """A job in which a rule has fired; test_changes has made and stopped it, if it ran."""
    sagemaker, name = running.client("sagemaker"), NAME

    def has_fired() -> bool:
        rules = sagemaker.describe_training_job(TrainingJobName=name)["DebugRuleEvaluationStatuses"]
        return any(rule["RuleEvaluationStatus"] == "IssuesFound" for rule in rules)

    with suppress(sagemaker.exceptions.ResourceInUse):
        sagemaker.create_training_job(**build_endless_request())
        wait_until(has_fired, "a rule to fire")
        sagemaker.stop_training_job(TrainingJobName=name)
        wait_until_ended(running, name)
    return name


@pytest.fixture(scope="package")
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
    return import_run(running, ended, name, folder, lines)


@pytest.fixture(scope="package")
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
    return import_run(running, ended, "console-damaged", folder, lines)


@pytest.fixture(scope="package")
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
    return import_run(running, ended, "console-deep", folder, [[1, "deep"]])


@pytest.fixture(scope="package")
def axe() -> str:
    return (install_packages(development=True) / "node_modules" / "axe-core" / "axe.min.js").read_text()
