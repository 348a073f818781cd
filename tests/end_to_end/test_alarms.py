"""Tests of alarms and metric filters on job logs, including a stopped job."""

import io
import json
import zipfile
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

pytestmark = pytest.mark.any_back_end

HANDLER = """
import boto3

def handler(event, context):
    for metric in event["alarmData"]["configuration"]["metrics"]:
        name = metric["metricStat"]["metric"]["dimensions"]["TrainingJobName"]
        boto3.client("sagemaker").stop_training_job(TrainingJobName=name)
"""
# One line, of no more characters than ContainerEntrypoint takes.
SCRIPT = (
    "import time; [(print(f'step={s} loss={s};', flush=True), "
    's % 2 and print(\'{"level": "odd", "loss": %d}\' % s, flush=True), time.sleep(.05)) for s in range(9999)]'
)
GROUP = "/aws/sagemaker/TrainingJobs"


def test_stopped_by_alarm(
    emulator: RunningEmulator, wait_for_job: Callable[..., dict[str, Any]], job_name: str
) -> None:
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("index.py", HANDLER)
    role = "arn:aws:iam::123456789012:role/Training"
    emulator.client("iam").create_role(RoleName=job_name, AssumeRolePolicyDocument="{}")
    function = emulator.client("lambda").create_function(
        FunctionName=job_name,
        Runtime="python3.12",
        Role=f"arn:aws:iam::123456789012:role/{job_name}",
        Handler="index.handler",
        Code={"ZipFile": code.getvalue()},
    )["FunctionArn"]
    emulator.client("s3").create_bucket(Bucket=job_name)
    cloudwatch, logs = emulator.client("cloudwatch"), emulator.client("logs")
    dimensions = [{"Name": "TrainingJobName", "Value": job_name}]
    cloudwatch.put_metric_alarm(
        AlarmName=job_name,
        Namespace=GROUP,
        MetricName="loss",
        Dimensions=dimensions,
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=1,
        Threshold=20,
        ComparisonOperator="GreaterThanThreshold",
        AlarmActions=[function],
    )
    if not logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"]:
        logs.create_log_group(logGroupName=GROUP)
    for name, pattern, value in (("steps", '"step="', "1"), ("odd", '{ $.level = "odd" && $.loss < 10 }', "$.loss")):
        logs.put_metric_filter(
            logGroupName=GROUP,
            filterName=f"{job_name}-{name}",
            filterPattern=pattern,
            metricTransformations=[{"metricName": name, "metricNamespace": job_name, "metricValue": value}],
        )
    emulator.client("sagemaker").create_training_job(
        TrainingJobName=job_name,
        AlgorithmSpecification={
            "TrainingImage": "pytorch-training:2.8.0-cpu-py312",
            "TrainingInputMode": "File",
            "ContainerEntrypoint": ["python", "-c", SCRIPT],
            "MetricDefinitions": [{"Name": "loss", "Regex": "loss=(.*?);"}],
        },
        RoleArn=role,
        OutputDataConfig={"S3OutputPath": f"s3://{job_name}/output"},
        ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        StoppingCondition={"MaxRuntimeInSeconds": 600},
    )
    ended = wait_for_job(job_name)
    assert ended["TrainingJobStatus"] == "Stopped", ended.get("FailureReason")
    (alarm,) = cloudwatch.describe_alarms(AlarmNames=[job_name])["MetricAlarms"]
    assert (alarm["StateValue"], json.loads(alarm["StateReasonData"])["threshold"]) == ("ALARM", 20.0)
    (final,) = ended["FinalMetricDataList"]
    assert (final["MetricName"], final["Value"] > 20) == ("loss", True)

    def sum_of(name: str) -> float:
        found = cloudwatch.get_metric_data(
            MetricDataQueries=[
                {
                    "Id": "m",
                    "MetricStat": {
                        "Metric": {"Namespace": job_name, "MetricName": name},
                        "Period": 3600,
                        "Stat": "Sum",
                    },
                }
            ],
            StartTime=ended["CreationTime"],
            EndTime=ended["LastModifiedTime"] + timedelta(days=365),
        )
        return float(sum(found["MetricDataResults"][0]["Values"]))

    wait_until(lambda: sum_of("steps") == final["Value"] + 1, lambda: (sum_of("steps"), final))
    assert sum_of("odd") == 1 + 3 + 5 + 7 + 9
    cloudwatch.delete_alarms(AlarmNames=[job_name])
