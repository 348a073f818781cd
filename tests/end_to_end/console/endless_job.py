"""A job in which a rule fires and which does nothing more until it is stopped."""

from typing import Any

from sdk_compat.demo.training_job import BUCKET, SICK, build_request
from tests.end_to_end.profiled_jobs import profile
from tests.end_to_end.test_rules import ENTRY_POINT, TRAINING

NAME = "console-sick"


def stage_endless_script(s3: Any) -> None:
    """Upload a script that saves numbers and waits: a framework would take seconds to import, and a core meanwhile."""
    s3.put_object(Bucket=BUCKET, Key="code/run.py", Body=TRAINING.encode())


def build_endless_request() -> dict[str, Any]:
    """The request of that job, with profiling and the rule that fires: others would only read beside it."""
    request = profile(build_request(NAME, SICK))
    (fires, *_) = request["DebugRuleConfigurations"]
    request["DebugRuleConfigurations"] = [fires]
    del request["ProfilerRuleConfigurations"]
    request["ProfilerConfig"]["ProfilingIntervalInMilliseconds"] = 500
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ENTRY_POINT
    code = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/code/"}}
    request["InputDataConfig"] = [{"ChannelName": "code", "DataSource": code}]
    del request["HyperParameters"]["sagemaker_submit_directory"]
    request["Environment"] = {"WAIT": "3600"}
    return request
