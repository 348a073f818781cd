"""Tests of a job that fills its volume: it is ended, and harms no other."""

import pytest

from emulator.state.disk import DiskBudget
from tests.integration.emulator.jobs.job_harness import JobHarness

REGION = "us-east-1"
GIB = 1024**3
SLEEP = "import time; time.sleep(600)"
# Blocks that are taken and never written cost nothing. The folder is closed to who is not root.
FILL = f"""
import os, time
home = os.environ["HOME"]
os.mkdir(home + "/closed")
with open(home + "/closed/filling", "wb") as file:
    os.posix_fallocate(file.fileno(), 0, {GIB + 2**21})
    os.link(file.name, home + "/second-name")
os.chmod(home + "/closed", 0)
{SLEEP}
"""
GO_ON_WRITING = """
import os, time
with open(os.environ["HOME"] + "/growing", "wb") as file:
    for size in range(2**21, 2**29, 2**21):
        os.posix_fallocate(file.fileno(), 0, size)
        time.sleep(0.2)
time.sleep(600)
"""


@pytest.mark.slow
def test_a_job_that_fills_its_volume_is_ended(harness: JobHarness) -> None:
    harness.jobs.training.create(REGION, harness.request("other", SLEEP))
    harness.wait_for_stage("Training", "other")
    found = harness.run(harness.request(script=FILL))
    assert found["TrainingJobStatus"] == "Failed"
    reason = found["FailureReason"]
    assert reason.startswith("AlgorithmError: No space left on device: the job wrote 1.00 GiB to its volume, and ")
    assert "ResourceConfig.VolumeSizeInGB is 1." in reason
    assert reason.endswith(("exit code: 137", "exit code: 143"))
    assert harness.describe("other")["TrainingJobStatus"] == "InProgress"


def test_a_job_that_keeps_writing_to_a_full_disk_is_ended(harness: JobHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its volume is larger than what is left: the bound is what is to stay free."""
    for name, script in (("quiet", SLEEP), ("writes", GO_ON_WRITING)):
        harness.jobs.training.create(REGION, harness.request(name, script))
        harness.wait_for_stage("Training", name)
    monkeypatch.setattr(DiskBudget, "read_free", lambda budget: budget.reserve - 1)
    reason = harness.wait("writes")["FailureReason"]
    assert reason.startswith("AlgorithmError: No space left on device: ")
    assert "(--disk-reserve), and the job went on writing" in reason
    assert harness.describe("quiet")["TrainingJobStatus"] == "InProgress"
