"""Test of the metrics of a running training job."""

from statistics import mean

import pytest

from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.waiting import wait_until


@pytest.mark.slow
def test_metrics_of_the_log_of_files_and_of_the_machine(harness: JobHarness) -> None:
    script = """
print("loss=3;", flush=True)
block = bytearray(b"x") * (64 << 20)
metrics = pathlib.Path(os.environ["SAGEMAKER_METRICS_DIRECTORY"], "7.json")
with metrics.open("w") as file:
    for value in ("0.25", "1e999", '"text"', "0.75"):
        file.write('{"MetricName": "accuracy", "Value": %s, "Timestamp": %f}\\n' % (value, time.time()))
    file.write("no record\\n[]\\n")
while not (ml / "model/measured").exists():
    sum(range(100_000))
print("loss=0.5;", flush=True)
with metrics.open("a") as file:
    file.write('{"MetricName": "last", "Value": 1, "Timestamp": %f}\\n{"MetricName": "half' % time.time())
"""
    request = harness.request(script=script)
    request["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=(.*?);"}]
    harness.jobs.training.create(REGION, request)
    host, job = {"Host": "job/algo-1"}, {"TrainingJobName": "job"}
    wait_until(lambda: len(harness.metric("DiskUtilization", host)) >= 2 and len(harness.metric("accuracy", job)) == 2)
    next((harness.settings.state_dir / "jobs").glob("job-*/algo-1/model")).joinpath("measured").touch()
    found = {each["MetricName"]: each["Value"] for each in harness.wait()["FinalMetricDataList"]}
    assert found == {"loss": 0.5}, "those of the request's definitions"
    assert [harness.metric(name, job) for name in ("loss", "accuracy", "last")] == [[3.0, 0.5], [0.25, 0.75], [1.0]]
    # One process that never waits. Its time and the clock are read one after the other: what a delay between them adds
    # to one value is missing in the next.
    assert 0 < mean(harness.metric("CPUUtilization", host)) <= 110
    assert 100 * 64 / 8192 <= max(harness.metric("MemoryUtilization", host)) < 5, "of the 8 GiB of an ml.m5.large"
    assert 0 < max(harness.metric("DiskUtilization", host)) < 1
