"""Tests of the PyTorch example jobs' runs, read by the real smdebug 1.0.34."""

import uuid
from pathlib import Path

import pytest

from examples.frameworks.job import build_request, stage_scripts
from tests.end_to_end.finished_jobs import wait_until_ended
from tests.end_to_end.test_pytorch import SCRIPTS, Job
from tests.interop.test_upstream_reads_ours import read_ours
from tests.interop.upstream import Upstream
from tests.running_emulator import RunningEmulator


@pytest.mark.any_back_end
@pytest.mark.parametrize("kind", SCRIPTS)
def test_upstream_reads_the_same(kind: str, emulator: RunningEmulator, tmp_path: Path, upstream: Upstream) -> None:
    stage_scripts(emulator.client("s3"), "pytorch")
    name = f"pytorch-{kind}-{uuid.uuid4().hex[:8]}"
    request = build_request("pytorch", name, SCRIPTS[kind], epochs=3)
    emulator.client("sagemaker").create_training_job(**request)
    job = Job(emulator, wait_until_ended(emulator, name), tmp_path)
    original, ours = upstream.read_run(job.run), read_ours(job.trial)
    assert ours["steps"]["TRAIN"] == [0, 30]
    assert ours["steps"]["EVAL"] == [0, 1, 2]
    assert "gradient/Sequential_1.weight" in ours["collections"]["gradients"]
    for tensor, found in ours["tensors"].items():
        assert found == original["tensors"][tensor], tensor
    assert ours == original
