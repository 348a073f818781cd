"""Tests of whole processing job runs: real processes and real S3."""

import json
import sys
from typing import Any

import pytest

from emulator.exceptions import ResourceInUse, ResourceNotFound, ValidationException
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.waiting import ENDED, wait_until

LOG = "/aws/sagemaker/ProcessingJobs"
PRELUDE = """
import os, pathlib, signal, sys, time, json
ml = pathlib.Path(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"))
"""


def build_request(
    harness: JobHarness, script: str, name: str = "work", count: int = 1, **members: Any
) -> dict[str, Any]:
    request: dict[str, Any] = {
        "ProcessingJobName": name,
        "AppSpecification": {
            "ImageUri": "tiny:1",
            "ContainerEntrypoint": [sys.executable, "-I", "-S", "-c", PRELUDE + script],
        },
        "ProcessingResources": {
            "ClusterConfig": {"InstanceCount": count, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1}
        },
        "RoleArn": "arn:aws:iam::123456789012:role/x",
    }
    return request | members


def build_input(harness: JobHarness, name: str, key: str, **source: str) -> dict[str, Any]:
    where = {"S3Uri": f"s3://{harness.bucket}/{key}", "LocalPath": f"/opt/ml/processing/input/{name}"}
    return {"InputName": name, "S3Input": {**where, "S3DataType": "S3Prefix", "S3InputMode": "File", **source}}


def build_outputs(harness: JobHarness, **modes: str) -> dict[str, Any]:
    outputs = [
        {
            "OutputName": name,
            "S3Output": {
                "S3Uri": f"s3://{harness.bucket}/out/{name}",
                "LocalPath": f"/opt/ml/processing/{name}",
                "S3UploadMode": mode,
            },
        }
        for name, mode in modes.items()
    ]
    return {"Outputs": outputs}


def describe(harness: JobHarness, name: str = "work") -> dict[str, Any]:
    return harness.jobs.processing.describe(harness.jobs.processing.get(REGION, name))


def wait(harness: JobHarness, name: str = "work") -> dict[str, Any]:
    wait_until(lambda: describe(harness, name)["ProcessingJobStatus"] in ENDED, lambda: describe(harness, name))
    return describe(harness, name)


def run(harness: JobHarness, request: dict[str, Any]) -> dict[str, Any]:
    harness.jobs.processing.create(REGION, request)
    return wait(harness, request["ProcessingJobName"])


def statuses(harness: JobHarness) -> list[str]:
    harness.jobs.close()
    events = [event for event in harness.publisher.events if "ProcessingJobStatus" in event["detail"]]
    assert {event["detail-type"] for event in events} == {"SageMaker Processing Job State Change"}
    return [event["detail"]["ProcessingJobStatus"] for event in events]


def test_an_isolated_job_reaches_nothing(harness: JobHarness) -> None:
    if not harness.runtime.grant.network:
        pytest.skip("the kernel grants no namespaces")
    script = "import socket\nprint([name for _, name in socket.if_nameindex() if name[0] in 'le'])"
    request = build_request(harness, script, NetworkConfig={"EnableNetworkIsolation": True})
    assert run(harness, request)["ProcessingJobStatus"] == "Completed"
    assert harness.log(LOG, "work/") == ["['lo']"]


def test_job_that_succeeds(harness: JobHarness) -> None:
    for at in range(3):
        harness.s3.put(harness.bucket, f"data/{at}.csv", b"1,2")
    harness.s3.put(harness.bucket, "code/x.py", b"print('x')")
    script = """
out = ml / "processing/report"
files = sorted(str(p.relative_to(ml)) for p in (ml / "processing/input").rglob("*") if p.is_file())
(out / "sub").mkdir()
(out / "sub/found.json").write_text(json.dumps({
    "files": files, "arguments": sys.argv[1:], "environment": dict(os.environ),
    "config": json.loads((ml / "config/processingjobconfig.json").read_text()),
    "resources": json.loads((ml / "config/resourceconfig.json").read_text()),
}))
print("done", flush=True)
(ml / "output/message").write_text("two rows\\n")
"""
    request = build_request(
        harness,
        script,
        ProcessingInputs=[build_input(harness, "data", "data"), build_input(harness, "code", "code/x.py")],
        ProcessingOutputConfig=build_outputs(harness, report="EndOfJob"),
        Environment={"MINE": "/opt/ml/processing/input/data", "AWS_ENDPOINT_URL": "http://elsewhere"},
        ExperimentConfig={"ExperimentName": "e", "TrialName": "t"},
        NetworkConfig={"EnableInterContainerTrafficEncryption": False},
        Tags=[{"Key": "team", "Value": "a"}],
    )
    request["AppSpecification"]["ContainerArguments"] = ["--in", "/opt/ml/processing/input/data/0.csv"]
    done = run(harness, request)
    assert done["ProcessingJobStatus"] == "Completed", done
    assert done["ExitMessage"] == "two rows"
    assert done["ProcessingStartTime"] <= done["ProcessingEndTime"]
    assert done["StoppingCondition"] == {"MaxRuntimeInSeconds": 86400}
    for member in ("AppSpecification", "ExperimentConfig", "NetworkConfig", "Environment", "RoleArn"):
        assert done[member] == request[member]
    assert done["ProcessingInputs"][0]["S3Input"]["S3DataDistributionType"] == "FullyReplicated"
    assert "Tags" not in done
    arn = done["ProcessingJobArn"]
    assert arn == "arn:aws:sagemaker:us-east-1:123456789012:processing-job/work"
    assert harness.jobs.tags.list_all(arn) == [{"Key": "team", "Value": "a"}]

    found = json.loads(harness.s3.get(harness.bucket, "out/report/sub/found.json"))
    data = "processing/input/data"
    assert found["files"] == ["processing/input/code/x.py", f"{data}/0.csv", f"{data}/1.csv", f"{data}/2.csv"]
    opt_ml = found["environment"].get("SAGEMAKER_BASE_DIR", "/opt/ml")
    assert found["arguments"] == ["--in", f"{opt_ml}/{data}/0.csv"]
    assert found["environment"]["MINE"] == f"{opt_ml}/{data}"
    assert found["environment"]["AWS_ENDPOINT_URL"] == "http://127.0.0.1:1"
    assert found["environment"]["PROCESSING_JOB_NAME"] == "work"
    assert found["resources"] == {"current_host": "algo-1", "hosts": ["algo-1"]}
    assert found["config"]["ProcessingJobArn"] == arn
    assert found["config"]["ProcessingResources"] == request["ProcessingResources"]
    assert found["config"]["ProcessingInputs"][0]["S3Input"]["LocalPath"] == f"{opt_ml}/{data}"
    log = harness.log(LOG, "work/algo-1-")
    assert log[-1] == "done"
    assert len([line for line in log if "SAGEMAKER_BASE_DIR" in line]) == int(opt_ml != "/opt/ml"), "it is said once"

    assert harness.jobs.processing.list_page(REGION, {"NameContains": "wor"})[0][0].name == "work"
    with pytest.raises(ResourceInUse, match="a job with this name already exists"):
        harness.jobs.processing.create(REGION, request)
    harness.jobs.processing.delete(REGION, "work")
    with pytest.raises(ValidationException, match="not found"):
        describe(harness)
    with pytest.raises(ResourceNotFound):
        harness.jobs.tags.list_all(arn)
    assert statuses(harness) == ["InProgress", "Completed"]
    assert list((harness.settings.state_dir / "jobs").iterdir()) == []


def test_hosts_share_inputs_and_find_each_other(harness: JobHarness) -> None:
    for at in range(4):
        harness.s3.put(harness.bucket, f"data/{at}.csv", b"1,2")
    script = """
resources = json.loads((ml / "config/resourceconfig.json").read_text())
rank = resources["hosts"].index(resources["current_host"])
names = sorted(p.name for p in (ml / "processing/input/data").iterdir())
(ml / "processing/report" / f"{rank}.txt").write_text(" ".join([str(len(resources["hosts"])), *names]))
print("rank", rank)
"""
    done = run(
        harness,
        build_request(
            harness,
            script,
            count=2,
            ProcessingInputs=[build_input(harness, "data", "data", S3DataDistributionType="ShardedByS3Key")],
            ProcessingOutputConfig=build_outputs(harness, report="EndOfJob"),
        ),
    )
    assert done["ProcessingJobStatus"] == "Completed", done
    assert harness.s3.get(harness.bucket, "out/report/0.txt") == b"2 0.csv 2.csv"
    assert harness.s3.get(harness.bucket, "out/report/1.txt") == b"2 1.csv 3.csv"
    assert [harness.log(LOG, f"work/algo-{host}-")[-1] for host in (1, 2)] == ["rank 0", "rank 1"]


def test_a_failure_is_reported_and_only_continuous_output_is_kept(harness: JobHarness) -> None:
    script = """
(ml / "processing/live/a").write_text("a")
(ml / "processing/last/b").write_text("b")
(ml / "output/message").write_text("the third row is wrong")
sys.exit(3)
"""
    done = run(
        harness,
        build_request(
            harness, script, ProcessingOutputConfig=build_outputs(harness, live="Continuous", last="EndOfJob")
        ),
    )
    assert done["ProcessingJobStatus"] == "Failed"
    assert done["FailureReason"] == "AlgorithmError: the third row is wrong, exit code: 3"
    assert done["ExitMessage"] == "the third row is wrong"
    assert harness.stored("out/") == ["out/live/a"]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"ProcessingInputs": ["nothing/"]}, "ClientError: Data download of the input 'data' failed: No object is at"),
        ({"ProcessingOutputConfig": "no-such-bucket-at-all"}, "ClientError: S3Uri of the output 'report' is s3://no-"),
        ({"AppSpecification": {"ImageUri": "nobody-built-this:1"}}, "ClientError: No image 'nobody-built-this:1'"),
    ],
)
def test_what_cannot_run_fails_and_says_why(harness: JobHarness, members: dict[str, Any], reason: str) -> None:
    if "ProcessingInputs" in members:
        members = {"ProcessingInputs": [build_input(harness, "data", members["ProcessingInputs"][0])]}
    if bucket := members.get("ProcessingOutputConfig"):
        members = {"ProcessingOutputConfig": build_outputs(harness, report="EndOfJob")}
        members["ProcessingOutputConfig"]["Outputs"][0]["S3Output"]["S3Uri"] = f"s3://{bucket}/x"
    done = run(harness, build_request(harness, "", **members))
    assert done["ProcessingJobStatus"] == "Failed"
    assert done["FailureReason"].startswith(reason)
    assert "ProcessingStartTime" not in done


def test_continuous_output_is_there_while_the_job_runs_and_stop_ends_it(harness: JobHarness) -> None:
    script = "(ml / 'processing/last/b').write_text('b')\n(ml / 'processing/live/a').write_text('a')\ntime.sleep(600)"
    outputs = build_outputs(harness, live="Continuous", last="EndOfJob")
    harness.jobs.processing.create(REGION, build_request(harness, script, ProcessingOutputConfig=outputs))
    wait_until(lambda: harness.stored("out/") == ["out/live/a"], lambda: describe(harness))
    assert describe(harness)["ProcessingJobStatus"] == "InProgress"
    with pytest.raises(ResourceInUse, match="is in status InProgress"):
        harness.jobs.processing.delete(REGION, "work")
    assert harness.jobs.processing.stop(REGION, "work").processing_job_status == "Stopping"
    assert wait(harness)["ProcessingJobStatus"] == "Stopped"
    assert harness.stored("out/") == ["out/last/b", "out/live/a"]
    with pytest.raises(ValidationException, match="the processing job is in status Stopped"):
        harness.jobs.processing.stop(REGION, "work")
    assert statuses(harness) == ["InProgress", "Stopping", "Stopped"]


def test_time_that_is_up_stops_the_job(harness: JobHarness) -> None:
    done = run(harness, build_request(harness, "time.sleep(600)", StoppingCondition={"MaxRuntimeInSeconds": 1}))
    assert done["ProcessingJobStatus"] == "Stopped"
    assert any("it ran 1 s" in line for line in harness.log(LOG, "work/"))


def test_a_job_is_found_by_the_name_in_its_arn(harness: JobHarness) -> None:
    request = build_request(harness, "time.sleep(600)", name="Work-A", Tags=[{"Key": "team", "Value": "a"}])
    job, _ = harness.jobs.processing.create(REGION, request)
    arn = job.arn
    assert arn.endswith("/work-a")
    assert describe(harness, "work-a")["ProcessingJobName"] == "Work-A"
    for asked in (arn, arn.replace("work-a", "Work-A")):
        assert harness.jobs.tags.list_all(asked) == [{"Key": "team", "Value": "a"}]
    harness.jobs.tags.add(arn.replace("work-a", "WORK-A"), [{"Key": "more", "Value": "b"}])
    assert len(harness.jobs.tags.list_all(arn)) == 2
    with pytest.raises(ResourceNotFound, match="processing-job/Nobody"):
        harness.jobs.tags.list_all(arn.replace("work-a", "Nobody"))
    with pytest.raises(ResourceInUse, match="already exists"):
        # Its ARN would be the other's.
        harness.jobs.processing.create(REGION, build_request(harness, "", name="wORK-a"))
    assert harness.jobs.processing.stop(REGION, "work-a").name == "Work-A"
    assert wait(harness, "work-a")["ProcessingJobStatus"] == "Stopped"
    harness.jobs.processing.delete(REGION, "work-a")
    with pytest.raises(ValidationException, match="not found"):
        describe(harness, "Work-A")


@pytest.mark.slow
def test_a_rule_is_found_by_the_name_in_its_arn_and_by_that_which_clients_build(harness: JobHarness) -> None:
    """AWS's notebooks join the names' first 26 characters and the ARN's last 8 by hyphens, whatever the 26th is."""
    name, rule = "A-training-of-25-characte-r", harness.rule("My-rule-of-25-characters--X", "pass")
    harness.run(harness.request(name, DebugHookConfig=harness.hook(), DebugRuleConfigurations=[rule]))
    (evaluation,) = harness.describe(name)["DebugRuleEvaluationStatuses"]
    arn = evaluation["RuleEvaluationJobArn"]
    built = f"{name[:26]}-{rule['RuleConfigurationName'][:26]}-{arn[-8:]}"
    assert built.startswith("A-training-of-25-characte--My-rule-of-25-characters---")
    for asked in (built, arn.rpartition("/")[2]):
        assert describe(harness, asked)["ProcessingJobName"] == built
        with pytest.raises(ValidationException, match="in status Completed"):
            harness.jobs.processing.stop(REGION, asked)
        with pytest.raises(ResourceInUse, match="evaluates a rule of the training job A-training"):
            harness.jobs.processing.delete(REGION, asked)
        with pytest.raises(ResourceInUse, match="already exists"):
            harness.jobs.processing.create(REGION, build_request(harness, "", name=asked))


@pytest.mark.slow
def test_rules_and_jobs_are_listed_together_and_share_names(harness: JobHarness) -> None:
    rule = harness.rule("R", "pass")
    harness.run(harness.request(DebugHookConfig=harness.hook(), DebugRuleConfigurations=[rule]))
    run(harness, build_request(harness, ""))
    pages, token = [], None
    while True:
        page, token = harness.jobs.processing.list_page(
            REGION, {"MaxResults": 1, "SortBy": "Name"} | ({"NextToken": token} if token else {})
        )
        pages.append([job.name for job in page])
        if token is None:
            break
    assert [name[:6] for page in pages for name in page] == ["job-R-", "work"]
    taken = pages[0][0]
    with pytest.raises(ResourceInUse):
        harness.jobs.processing.create(REGION, build_request(harness, "", name=taken))
    with pytest.raises(ResourceInUse, match="evaluates a rule of the training job job"):
        harness.jobs.processing.delete(REGION, taken)
