"""Commands that have nothing to show, or do not go ahead, and say why."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from emulator.cli.commands import main
from sdk_compat.demo.training_job import RULES_IMAGE, build_training_job
from tests.boto3_client import make_client
from tests.forked_emulator import ForkedEmulator
from tests.waiting import has_ended, wait_until

BUCKET = "refusals"


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedEmulator]:
    """An emulator with a job that saves nothing and failed at once, and one that runs on and prints nothing."""
    with ForkedEmulator(tmp_path_factory.mktemp("refusals") / "state", runtime="process") as started:
        make_client(started.endpoint_url, "s3").create_bucket(Bucket=BUCKET)
        sagemaker = make_client(started.endpoint_url, "sagemaker")
        for name, image in (("bare", "nobody-built:1"), ("endless", RULES_IMAGE)):
            job = build_training_job(name, image=image, hyperparameters={}, channels=(), collections={}, bucket=BUCKET)
            del job["DebugHookConfig"], job["DebugRuleConfigurations"]
            job["AlgorithmSpecification"]["ContainerEntrypoint"] = ["sleep", "600"]
            sagemaker.create_training_job(**job)
        wait_until(lambda: has_ended(sagemaker.describe_training_job(TrainingJobName="bare")))
        yield started


def run(emulator: ForkedEmulator, *arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, [*arguments, "--state-dir", str(emulator.state_dir)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["tensors", "bare"], "bare saves no tensors: it was created without a DebugHookConfig.\n"),
        (["plot", "bare", "loss"], "bare saves no tensors: it was created without a DebugHookConfig.\n"),
        (["profile", "bare"], "bare is not profiled: it was created without a ProfilerConfig.\n"),
        (["logs", "bare", "--rule", "Overfit"], "bare has no rule Overfit: its rules are none.\n"),
        (["logs", "endless"], "endless has no log yet, its status is InProgress: add --follow to print lines as they "),
        (["export", "endless", "--output"], "endless has not ended yet: wait for its end, then export it.\n"),
        (["stop-handler", "remove"], "There is no stop handler smdebug-stop-training: give the --name that it was "),
        (["processing", "clean"], "There is no processing job clean: smdebug-emulator processing lists them.\n"),
        (["tuning", "search"], "There is no tuning job search: smdebug-emulator tuning lists them.\n"),
        (["pipelines", "flow"], "There is no pipeline execution flow: smdebug-emulator pipelines lists them.\n"),
    ],
)
def test_the_reason_is_one_sentence(command: list[str], said: str, emulator: ForkedEmulator, tmp_path: Path) -> None:
    more = [str(tmp_path / "job")] if command[-1] == "--output" else []
    done = CliRunner().invoke(main, [*command, *more, "--state-dir", str(emulator.state_dir)])
    assert done.exit_code != 0
    assert done.output.startswith(said)
    assert done.output.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("processing", "No processing jobs.\n"),
        ("tuning", "No tuning jobs.\n"),
        ("pipelines", "No pipeline executions.\n"),
    ],
)
def test_an_empty_list_is_said(command: str, said: str, emulator: ForkedEmulator) -> None:
    assert run(emulator, command) == said
    assert run(emulator, command, "--json") == "[]\n"


def test_an_export_into_a_folder_with_files_writes_nothing(emulator: ForkedEmulator, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    refused = run(emulator, "export", "bare", "--output", str(tmp_path), code=1)
    assert refused == f"{tmp_path} already exists and is not empty: give another folder with --output.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_an_export_onto_a_file_is_refused(
    emulator: ForkedEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bare").write_text("mine")
    assert run(emulator, "export", "bare", code=1) == "bare is a file: give a folder with --output.\n"
    assert (tmp_path / "bare").read_text() == "mine"


def test_an_object_that_no_file_can_hold_is_skipped(emulator: ForkedEmulator, tmp_path: Path) -> None:
    s3 = make_client(emulator.endpoint_url, "s3")
    for key in ("output/bare/output/kept", "output/bare/output/folder/"):
        s3.put_object(Bucket=BUCKET, Key=key, Body=b"x")
    said = run(emulator, "export", "bare", "--output", str(tmp_path / "job"))
    assert f"s3://{BUCKET}/output/bare/output/folder/ cannot be stored as a local file and is skipped.\n" in said
    assert (tmp_path / "job" / "objects" / BUCKET / "output/bare/output/kept").read_bytes() == b"x"


def test_without_a_browser_the_address_is_printed(emulator: ForkedEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webbrowser.open", lambda _address: False)
    address, said = run(emulator, "open", "bare").splitlines()
    assert address == f"{emulator.endpoint_url}/console#/jobs/us-east-1/bare"
    assert said == "No browser could be opened: open the address yourself."


def test_an_image_of_local_processes_has_no_platform() -> None:
    refused = CliRunner().invoke(main, ["images", "build", "--runtime", "process", "--platform", "linux/arm64"])
    said = "--platform applies to Docker images only, not to local processes: leave it out.\n"
    assert (refused.exit_code, refused.output) == (1, said)


@pytest.mark.slow
@pytest.mark.parametrize(("command", "what"), [("deploy", "deployed"), ("remove", "removed")])
def test_a_stop_handler_at_no_endpoint_is_reported(command: str, what: str, refusing_port: int) -> None:
    endpoint = f"http://127.0.0.1:{refusing_port}"
    done = CliRunner().invoke(main, ["stop-handler", command, "--endpoint-url", endpoint])
    assert done.exit_code == 1
    assert done.output.startswith(f"The stop handler could not be {what}: Could not connect to the endpoint URL: ")
