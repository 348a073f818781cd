"""Tests of symbolic links in job output: nothing behind them is exposed.

The job's log names the link.
"""

import gzip
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sdk_compat.demo.training_job import build_training_job
from tests.end_to_end.finished_jobs import read_log, wait_until_ended
from tests.running_emulator import RunningEmulator

SECRET = "swordfish"
BUCKET = "links"
RUN = (
    "import json, os, pathlib, shutil, sys; ml = pathlib.Path(os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml')); "
    "exec(json.loads(json.loads((ml / 'input/config/hyperparameters.json').read_text())['script']))"
)
# Where the emulator looks for files of a job, below a folder that a job could put a link in the place of.
READ = (
    "failure",
    "weights.bin",
    "data/results.json",
    "tensors/events/000000000000/000000000000_worker_0.tfevents",
    "tensors/index/000000000/000000000000_worker_0.json",
    "events/000000000000/000000000000_worker_0.tfevents",
    "index/000000000/000000000000_worker_0.json",
    "000000000/000000000000_worker_0.json",
    "000000000000/000000000000_worker_0.tfevents",
    "tensorboard/train/events.out.tfevents.1.host",
)


@pytest.fixture
def secret_folder(tmp_path: Path) -> Path:
    """A folder of this machine that no job was given."""
    for name in READ:
        path = tmp_path / "secret" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{SECRET} of {name}")
    return tmp_path / "secret"


def run_script(emulator: RunningEmulator, script: str) -> dict[str, Any]:
    name = f"links-{uuid.uuid4().hex[:8]}"
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    request = build_training_job(
        name,
        image="pytorch-training:2.8",
        hyperparameters={"script": json.dumps(script)},
        channels=[],
        collections={},
        bucket=BUCKET,
    )
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ["python", "-c", RUN]
    request["TensorBoardOutputConfig"] = {"S3OutputPath": f"s3://{BUCKET}/tensorboard/{name}"}
    request["CheckpointConfig"] = {"S3Uri": f"s3://{BUCKET}/checkpoints/{name}"}
    del request["DebugRuleConfigurations"]
    emulator.client("sagemaker").create_training_job(**request)
    return wait_until_ended(emulator, name)


def read_everything(emulator: RunningEmulator, job: dict[str, Any]) -> Iterator[str]:
    """All that a client can get to see of a job."""
    yield str(job)
    yield read_log(emulator, job["TrainingJobName"])
    s3 = emulator.client("s3")
    for entry in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ()):
        if job["TrainingJobName"] in entry["Key"]:
            content = s3.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read()
            yield entry["Key"]
            yield (gzip.decompress(content) if entry["Key"].endswith(".gz") else content).decode(errors="replace")


# What reads the files of a job is the same for all back ends: one place shows that it does in each.
@pytest.mark.parametrize(
    "place",
    [
        "output/tensors",
        *(
            pytest.param(place, marks=pytest.mark.any_back_end)
            for place in (
                "model",
                "output",
                "output/data",
                "output/tensors/index",
                "output/tensors/events",
                "output/tensorboard",
                "checkpoints",
            )
        ),
    ],
)
def test_link_in_place_of_a_folder_is_not_followed(emulator: RunningEmulator, secret_folder: Path, place: str) -> None:
    script = (
        f"place = ml / {place!r}\n"
        "shutil.rmtree(place, ignore_errors=True)\n"
        "place.parent.mkdir(parents=True, exist_ok=True)\n"
        f"place.symlink_to({str(secret_folder)!r})\n"
    )
    job = run_script(emulator, script)
    assert SECRET not in "\n".join(read_everything(emulator, job))
    assert f"'{place}' is a symbolic link" in read_log(emulator, job["TrainingJobName"])
    artifact = place in {"model", "output", "output/data"}
    assert job["TrainingJobStatus"] == ("Failed" if artifact else "Completed"), job.get("FailureReason")
    if artifact:
        assert f"'{place}' is a symbolic link" in job["FailureReason"]


@pytest.mark.any_back_end
@pytest.mark.parametrize("place", ["output", "output/failure"])
def test_failure_reason_is_not_read_through_a_link(emulator: RunningEmulator, secret_folder: Path, place: str) -> None:
    target = secret_folder / "failure" if place.endswith("failure") else secret_folder
    script = (
        f"shutil.rmtree(ml / {place!r}, ignore_errors=True)\n"
        f"(ml / {place!r}).symlink_to({str(target)!r})\n"
        "sys.exit(3)\n"
    )
    job = run_script(emulator, script)
    assert SECRET not in "\n".join(read_everything(emulator, job))
    assert job["TrainingJobStatus"] == "Failed"
    assert job["FailureReason"].endswith("exit code: 3"), "why it failed by itself is what counts"
    assert f"'{place}' is a symbolic link" in read_log(emulator, job["TrainingJobName"])


@pytest.mark.any_back_end
def test_links_beside_the_files_of_a_job_are_not_followed(emulator: RunningEmulator, secret_folder: Path) -> None:
    script = (
        "for folder in ('model', 'output/data', 'output/tensors', 'output/tensorboard', 'checkpoints'):\n"
        "    (ml / folder / 'deep/er').mkdir(parents=True)\n"
        "    (ml / folder / 'kept').write_text('trea' + 'sure')\n"
        f"    (ml / folder / 'deep/er/link').symlink_to({str(secret_folder)!r})\n"
        f"    (ml / folder / 'file').symlink_to({str(secret_folder / 'weights.bin')!r})\n"
        "    os.mkfifo(ml / folder / 'pipe')\n"
    )
    job = run_script(emulator, script)
    assert job["TrainingJobStatus"] == "Completed", job.get("FailureReason")
    seen = "\n".join(read_everything(emulator, job))
    assert SECRET not in seen
    assert seen.count("treasure") == 5
    said = read_log(emulator, job["TrainingJobName"]).splitlines()
    assert "'checkpoints/file' is a symbolic link" in said[-1]
    assert len(said) == 2, "the image that runs in the requested one's place, and in one line all that was not read"
