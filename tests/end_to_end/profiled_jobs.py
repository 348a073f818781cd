"""Requests of the demo's jobs with profiling."""

from typing import Any

from sdk_compat.demo.training_job import BUCKET, build_rule

# Traces come soon, and some steps are profiled; an interval as short as AWS has.
TRACED = {
    "RotateFileCloseIntervalInSeconds": "1",
    "DataloaderProfilingConfig": "{'StartStep': 0, 'NumSteps': 100000, }",
    "PythonProfilingConfig": "{'StartStep': 5, 'NumSteps': 3, 'ProfilerName': 'cprofile', }",
}
# Neither such small steps nor a busy machine are what a job's verdict is to be here.
UNMOVED = {"SmallBatches_threshold": "0.001", "StepOutlier_n_outliers": "100000", "AllCoresBusy_threshold": "100"}


def profile(request: dict[str, Any]) -> dict[str, Any]:
    """The request of a job that is watched by the profiler, and reported of."""
    request["ProfilerConfig"] = {
        "S3OutputPath": f"s3://{BUCKET}/profiles",
        "ProfilingIntervalInMilliseconds": 100,
        "ProfilingParameters": TRACED,
    }
    request["ProfilerRuleConfigurations"] = [
        {**build_rule("ProfilerReport", **UNMOVED), "RuleConfigurationName": "Report-1"}
    ]
    return request
