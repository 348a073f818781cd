"""Validation of requests for processing jobs."""

from emulator.exceptions import ResourceLimitExceeded, ValidationException
from emulator.jobs.staging.hosts import MAX_HOSTS
from emulator.jobs.staging.processing import find_wrong_local_path
from emulator.operations.context import Request
from emulator.operations.validation.training_job import require_unique

MAX_RUNTIME_SECONDS = 5 * 24 * 3600


ACTS_ON = frozenset(
    {
        "ProcessingJobName",
        "ProcessingInputs.InputName",
        "ProcessingInputs.AppManaged",
        "ProcessingInputs.S3Input",
        "ProcessingOutputConfig.Outputs.OutputName",
        "ProcessingOutputConfig.Outputs.S3Output",
        "ProcessingOutputConfig.Outputs.AppManaged",
        "ProcessingResources.ClusterConfig.InstanceCount",
        "ProcessingResources.ClusterConfig.InstanceType",
        "ProcessingResources.ClusterConfig.VolumeSizeInGB",
        "StoppingCondition",
        "AppSpecification",
        "Environment",
        "NetworkConfig.EnableNetworkIsolation",
        "RoleArn",
        "Tags",
    }
)
REFUSES = {"ProcessingInputs.DatasetDefinition": "the emulator has neither Athena nor Redshift"}


def check_processing_job(request: Request) -> None:
    """Check the constraints that the model does not contain.

    Raises:
        ValidationException, ResourceLimitExceeded.
    """
    _check_cluster(request)
    _check_inputs(request)
    _check_outputs(request)
    if wrong := find_wrong_local_path(request):
        raise ValidationException(wrong)


def _check_cluster(request: Request) -> None:
    cluster = request["ProcessingResources"]["ClusterConfig"]
    if "InstancePreferences" not in cluster and not {"InstanceType", "InstanceCount"} <= cluster.keys():
        raise ValidationException("ClusterConfig must have InstanceType and InstanceCount, or InstancePreferences.")
    count = cluster.get("InstanceCount", 1)
    if count > MAX_HOSTS:
        raise ResourceLimitExceeded(
            f"A processing job may have at most {MAX_HOSTS} instances here, where one machine runs all of them; this "
            f"request asks for {count}."
        )
    runtime = request.get("StoppingCondition", {}).get("MaxRuntimeInSeconds", 0)
    if runtime > MAX_RUNTIME_SECONDS:
        raise ResourceLimitExceeded(
            "The account-level service limit 'Longest run time for a processing job' is "
            f"{MAX_RUNTIME_SECONDS} Seconds, with current utilization of 0 Seconds and a request delta of "
            f"{runtime} Seconds."
        )


def _check_inputs(request: Request) -> None:
    inputs = request.get("ProcessingInputs", [])
    require_unique("InputName", [each["InputName"] for each in inputs])
    for each in inputs:
        name = each["InputName"]
        if ("S3Input" in each) == ("DatasetDefinition" in each):
            raise ValidationException(f"The input {name!r} must have exactly one of S3Input and DatasetDefinition.")
        if "DatasetDefinition" in each:
            raise ValidationException(
                f"The input {name!r} has a DatasetDefinition, but the emulator has neither Athena nor Redshift. "
                "Give an S3Input."
            )
        source = each["S3Input"]
        if source.get("S3InputMode") == "Pipe":
            raise ValidationException(f"The input {name!r} has S3InputMode Pipe, which is not emulated. Use File.")
        if source.get("S3CompressionType") == "Gzip":
            raise ValidationException(
                f"The input {name!r} has S3CompressionType Gzip, which is only supported with S3InputMode Pipe."
            )


def _check_outputs(request: Request) -> None:
    outputs = request.get("ProcessingOutputConfig", {}).get("Outputs", [])
    require_unique("OutputName", [each["OutputName"] for each in outputs])
    for each in outputs:
        if "FeatureStoreOutput" in each and not each.get("AppManaged"):
            raise ValidationException(
                f"The output {each['OutputName']!r} has a FeatureStoreOutput: AppManaged must be true for it."
            )
