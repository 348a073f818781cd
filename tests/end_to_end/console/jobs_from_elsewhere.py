"""Jobs that ended elsewhere, with runs that are hard to show."""

from pathlib import Path
from typing import Any

from sdk_compat.demo.training_job import BUCKET
from tests.end_to_end.console.page import REGION, ask_emulator
from tests.running_emulator import RunningEmulator

CLASSES = [[5, 1, 0], [0, 4, 2], [0, 0, 4]]
STRANGE_NAME = "gradient/<img src=x onerror=document.title='taken'>\u202egnp"
LAYERS = [f"net.{layer}" for layer in range(502)]
LOG_LINES, LOG_BYTES = 4_000, 2_000_000


def import_run(emulator: RunningEmulator, ended: str, name: str, run: Path, lines: list[list[Any]]) -> str:
    """Have a job that ran elsewhere, like one that ended here, with a run and a log of its own."""
    upload(emulator, run, f"tensors/{name}/debug-output")
    record = ask_emulator(emulator, "GET", f"jobs/{REGION}/{ended}/record")
    record["job"]["name"] = name
    record["job"]["request"]["TrainingJobName"] = name
    logs = [{"group": "/aws/sagemaker/TrainingJobs", "stream": f"{name}/algo-1-1", "lines": lines}]
    ask_emulator(emulator, "POST", "records", {**record, "evaluations": [], "events": [], "metrics": [], "logs": logs})
    return name


def upload(emulator: RunningEmulator, folder: Path, place: str) -> None:
    s3 = emulator.client("s3")
    for path in folder.rglob("*"):
        if path.is_file():
            s3.upload_file(str(path), BUCKET, f"{place}/{path.relative_to(folder)}")
