"""Tests of `%load_ext smdebug_emulator` in a kernel of its own."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import nbformat
import pytest
from nbclient import NotebookClient

from sdk_compat import notebook_extension
from sdk_compat.sagemaker_emulator import SageMakerEmulator
from tests.forked_emulator import ForkedEmulator

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


@pytest.mark.slow
def test_an_emulator_is_started_for_the_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_EMULATOR_STATE_DIR", str(tmp_path / "state"))
    loaded, _, shown, _ = run_cells(tmp_path, CELLS)
    assert "which ends with this kernel" in read_text(loaded)
    (display,) = [each for each in shown if each["output_type"] == "display_data"]
    assert "Failed" in display["data"]["text/html"], "it was displayed anew when the job had ended"
    assert "of-a-notebook" in display["data"]["text/html"]


@pytest.mark.slow
def test_the_one_that_runs_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process in place of a kernel's."""
    magics: list[str] = []
    shell = SimpleNamespace(register_magic_function=lambda _function, _kind, name: magics.append(name))
    monkeypatch.setattr("sdk_compat.sagemaker_emulator.EmulatorProcess", ForkedEmulator)
    emulator = SageMakerEmulator("process", state_dir=tmp_path / "state", warm=None)
    try:
        monkeypatch.setenv("SMDEBUG_EMULATOR_STATE_DIR", str(tmp_path / "state"))
        before = dict(os.environ)
        notebook_extension.load_ipython_extension(shell)
        assert f"{emulator.endpoint_url}, which was running already" in capsys.readouterr().out
        assert magics == ["training_job"]
        assert ":assumed-role/smdebug-emulator/" in boto3.client("sts").get_caller_identity()["Arn"]
        notebook_extension.unload_ipython_extension(shell)
        assert dict(os.environ) == before
        assert emulator.is_running
    finally:
        notebook_extension.unload_ipython_extension(shell)
        emulator.stop()
