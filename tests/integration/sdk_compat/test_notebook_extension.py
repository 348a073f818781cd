"""Tests of `%load_ext smdebug_emulator`, in this process and in a kernel."""

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import boto3
import nbformat
import pytest
from nbclient import NotebookClient

from sdk_compat import notebook_extension
from sdk_compat.emulator_process import EmulatorStartError
from sdk_compat.notebook import TrainingJob
from sdk_compat.sagemaker_emulator import SageMakerEmulator
from tests.forked_emulator import ForkedEmulator
from tests.waiting import wait_until

CREATE = """
import boto3
from sdk_compat.demo.training_job import build_rule, build_training_job
boto3.client("s3").create_bucket(Bucket="bucket")
request = build_training_job(
    "of-a-notebook", image="nobody-built:1", hyperparameters={}, channels=(), collections={}, bucket="bucket"
)
boto3.client("sagemaker").create_training_job(**request)
"""
# nbclient takes the outputs of a cell until the cell has ended, so this one waits for the thread that updates them.
WATCHED = """
%training_job of-a-notebook
import threading, time
while any(thread.name.startswith("Thread-") and "_follow" in thread.name for thread in threading.enumerate()):
    time.sleep(0.1)
"""
CELLS = ("%load_ext smdebug_emulator", CREATE, WATCHED, "%unload_ext smdebug_emulator")


def run_cells(folder: Path, cells: tuple[str, ...]) -> list[list[Any]]:
    """Execute cells in a new kernel, and return the outputs of each."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return [list(cell.outputs) for cell in notebook.cells]


def read_text(outputs: list[Any]) -> str:
    return "".join(each["text"] for each in outputs if each["output_type"] == "stream")


@pytest.mark.nightly  # a kernel takes seconds to start: by day the tests below are in this process
def test_an_emulator_is_started_for_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_EMULATOR_STATE_DIR", str(tmp_path / "state"))
    loaded, _, shown, _ = run_cells(tmp_path, CELLS)
    assert "which ends with this kernel" in read_text(loaded)
    (display,) = [each for each in shown if each["output_type"] == "display_data"]
    assert "Failed" in display["data"]["text/html"], "it was displayed anew when the job had ended"
    assert "of-a-notebook" in display["data"]["text/html"]


class Shell:
    """What IPython gives an extension, and where it displays."""

    def __init__(self) -> None:
        self.magics: dict[str, Callable[[str], None]] = {}
        self.shown: list[str] = []

    def register_magic_function(self, function: Callable[[str], None], kind: str, name: str) -> None:
        assert kind == "line"
        self.magics[name] = function

    def display(self, job: TrainingJob, *, display_id: bool) -> "Shell":
        assert display_id
        self.update(job)
        return self

    def update(self, job: TrainingJob) -> None:
        self.shown.append(job._repr_html_())


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Shell]:
    """Emulators are forks."""
    monkeypatch.setenv("SMDEBUG_EMULATOR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr("sdk_compat.sagemaker_emulator.EmulatorProcess", ForkedEmulator)
    shell = Shell()
    monkeypatch.setattr("IPython.display.display", shell.display)
    yield shell
    notebook_extension.unload_ipython_extension(shell)


@pytest.mark.slow
def test_one_is_started_and_ends(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    before = dict(os.environ)
    notebook_extension.load_ipython_extension(shell)
    assert "which ends with this kernel" in capsys.readouterr().out
    address = os.environ["AWS_ENDPOINT_URL"]
    exec(CREATE, {})
    shell.magics["training_job"](" of-a-notebook ")
    wait_until(lambda: "Failed" in shell.shown[-1], "it is displayed anew when the job has ended")
    notebook_extension.unload_ipython_extension(shell)
    assert dict(os.environ) == before
    with pytest.raises(URLError):
        urlopen(address)


@pytest.mark.slow
@pytest.mark.parametrize("answered", [1, 2])
def test_what_is_displayed_stays_when_the_emulator_ends(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, answered: int
) -> None:
    notebook_extension.load_ipython_extension(shell)
    exec(CREATE, {})
    wait_until(lambda: TrainingJob("of-a-notebook").status == "Failed")
    calls: list[TrainingJob] = []

    def update(job: TrainingJob) -> None:
        calls.append(job)
        if len(calls) > answered:
            raise ConnectionError("The emulator does not answer")

    monkeypatch.setattr(shell, "update", update)
    shell.magics["training_job"]("of-a-notebook")
    # pytest fails where a thread ends by an exception.
    wait_until(lambda: len(calls) > 1 and not any("_follow" in each.name for each in threading.enumerate()))


@pytest.mark.slow
def test_one_that_is_named_and_does_not_answer_is_not_replaced(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_EMULATOR_REMOTE", "http://127.0.0.1:9")
    before = dict(os.environ)
    with pytest.raises(EmulatorStartError, match=r"127.0.0.1:9(.|\n)*unset SMDEBUG_EMULATOR_REMOTE"):
        notebook_extension.load_ipython_extension(shell)
    assert dict(os.environ) == before
    assert not shell.magics


@pytest.mark.slow
def test_the_one_that_runs_is_found(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    emulator = SageMakerEmulator("process", state_dir=tmp_path / "state", warm=None)
    try:
        before = dict(os.environ)
        notebook_extension.load_ipython_extension(shell)
        assert f"{emulator.endpoint_url}, which was running already" in capsys.readouterr().out
        assert ":assumed-role/smdebug-emulator/" in boto3.client("sts").get_caller_identity()["Arn"]
        notebook_extension.unload_ipython_extension(shell)
        assert dict(os.environ) == before
        assert emulator.is_running
    finally:
        emulator.stop()
