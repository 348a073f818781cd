"""Validation of requests for training jobs."""

import re
from collections import Counter
from collections.abc import Iterable

from emulator.exceptions import ResourceLimitExceeded, ValidationException
from emulator.jobs.model.profiler_config import describe_fault, list_rules
from emulator.jobs.model.training_job import DEFAULT_RUNTIME_SECONDS
from emulator.jobs.staging.channels import reads_pipe
from emulator.jobs.staging.hosts import MAX_HOSTS
from emulator.jobs.staging.opt_ml import find_taken_path
from emulator.operations.context import Request

MAX_RULES = 20
MAX_RUNTIME_SECONDS = 28 * 24 * 3600
_CHANNEL_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


ACTS_ON = frozenset(
    {
        "TrainingJobName",
        "HyperParameters",
        "AlgorithmSpecification.TrainingImage",
        "AlgorithmSpecification.TrainingInputMode",
        "AlgorithmSpecification.MetricDefinitions",
        "AlgorithmSpecification.ContainerEntrypoint",
        "AlgorithmSpecification.ContainerArguments",
        "RoleArn",
        "InputDataConfig.ChannelName",
        "InputDataConfig.DataSource.S3DataSource.S3DataType",
        "InputDataConfig.DataSource.S3DataSource.S3Uri",
        "InputDataConfig.DataSource.S3DataSource.S3DataDistributionType",
        "InputDataConfig.DataSource.S3DataSource.AttributeNames",
        "InputDataConfig.DataSource.S3DataSource.InstanceGroupNames",
        "InputDataConfig.ContentType",
        "InputDataConfig.CompressionType",
        "InputDataConfig.RecordWrapperType",
        "InputDataConfig.InputMode",
        "InputDataConfig.ShuffleConfig",
        "OutputDataConfig.S3OutputPath",
        "OutputDataConfig.CompressionType",
        "ResourceConfig.InstanceType",
        "ResourceConfig.InstanceCount",
        "ResourceConfig.VolumeSizeInGB",
        "ResourceConfig.KeepAlivePeriodInSeconds",
        "ResourceConfig.InstanceGroups",
        "StoppingCondition.MaxRuntimeInSeconds",
        "StoppingCondition.MaxWaitTimeInSeconds",
        "Tags",
        "EnableNetworkIsolation",
        "EnableManagedSpotTraining",
        "CheckpointConfig",
        "DebugHookConfig",
        "DebugRuleConfigurations",
        "TensorBoardOutputConfig",
        "ProfilerConfig",
        "ProfilerRuleConfigurations",
        "Environment",
        "RetryStrategy",
    }
)
REFUSES = {
    "AlgorithmSpecification.AlgorithmName": "no algorithm is known by name",
    "InputDataConfig.DataSource.FileSystemDataSource": "file systems are not emulated",
    "InputDataConfig.DataSource.DatasetSource": "a channel has an S3DataSource",
    "SessionChainingConfig": "where it is enabled: sessions of roles have no tags here",
}


def check_training_job(request: Request) -> None:
    """Check the constraints that the model does not contain.

    Raises:
        ValidationException, ResourceLimitExceeded.
    """
    _check_algorithm(request)
    _check_stopping_condition(request)
    _check_instances(request)
    check_rules(request)
    _check_channels(request)
    if (request.get("SessionChainingConfig") or {}).get("EnableSessionTagChaining"):
        raise ValidationException("EnableSessionTagChaining cannot be true: sessions of roles have no tags here.")
    if taken := find_taken_path(request):
        raise ValidationException(taken)


def _check_algorithm(request: Request) -> None:
    """Require what a container needs; the model does not, because other kinds of training leave it out."""
    algorithm = request.get("AlgorithmSpecification", {})
    if bool(algorithm.get("TrainingImage")) == bool(algorithm.get("AlgorithmName")):
        raise ValidationException(
            "Exactly one of TrainingImage and AlgorithmName must be given in AlgorithmSpecification."
        )
    if "AlgorithmName" in algorithm:
        raise ValidationException(
            f"AlgorithmSpecification names the algorithm {algorithm['AlgorithmName']!r}; this emulator knows no "
            "algorithms by name. Give its TrainingImage."
        )
    missing = [name for name in ("ResourceConfig", "StoppingCondition") if name not in request]
    if missing:
        raise ValidationException(f"{' and '.join(missing)} must be given for a job with a TrainingImage.")


def _check_stopping_condition(request: Request) -> None:
    """Check the times against AWS's default limit, and against each other for Spot instances."""
    condition = request["StoppingCondition"]
    runtime = condition.get("MaxRuntimeInSeconds", DEFAULT_RUNTIME_SECONDS)
    wait = condition.get("MaxWaitTimeInSeconds")
    if runtime > MAX_RUNTIME_SECONDS:
        raise ResourceLimitExceeded(
            f"The account-level service limit 'Longest run time for a training job' is {MAX_RUNTIME_SECONDS} Seconds, "
            f"with current utilization of 0 Seconds and a request delta of {runtime} Seconds."
        )
    if not request.get("EnableManagedSpotTraining"):
        if wait is not None:
            raise ValidationException(
                "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true"
            )
    elif wait is None or wait < runtime:
        raise ValidationException(
            "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds when "
            "EnableManagedSpotTraining is set to true"
        )


def _check_instances(request: Request) -> None:
    """Require either one instance type or instance groups; the model accepts both and neither."""
    resources = request["ResourceConfig"]
    groups = resources.get("InstanceGroups", [])
    if groups and ("InstanceType" in resources or "InstanceCount" in resources):
        raise ValidationException(
            "ResourceConfig has InstanceGroups, so it must have neither InstanceType nor InstanceCount: each group has "
            "its own."
        )
    # A list of preferred types replaces the single type, and contains their counts.
    complete = groups or "InstancePreferences" in resources or {"InstanceType", "InstanceCount"} <= resources.keys()
    if not complete:
        raise ValidationException("ResourceConfig must have InstanceType and InstanceCount, or InstanceGroups.")
    counts = [each.get("InstanceCount", 1) for each in groups or [resources]]
    if min(counts) < 1:
        raise ValidationException("InstanceCount must be 1 or more, in ResourceConfig and in each of InstanceGroups.")
    names = [group["InstanceGroupName"] for group in groups]
    require_unique("InstanceGroupName", names)
    for channel in request.get("InputDataConfig", []):
        asked = channel["DataSource"].get("S3DataSource", {}).get("InstanceGroupNames", [])
        unknown = [name for name in asked if name not in names]
        if unknown:
            known = ", ".join(names) or "none"
            raise ValidationException(
                f"The channel {channel['ChannelName']!r} is for the instance groups {', '.join(unknown)}, which "
                f"ResourceConfig.InstanceGroups does not have; it has: {known}."
            )
    if sum(counts) > MAX_HOSTS:
        raise ResourceLimitExceeded(
            f"A training job may have at most {MAX_HOSTS} instances here, where one machine runs all of them; this "
            f"request asks for {sum(counts)}."
        )


def _check_channels(request: Request) -> None:
    """Require S3 sources, names that can be folders, and Pipe mode for what only pipes can do."""
    require_unique("Channel names", [channel["ChannelName"] for channel in request.get("InputDataConfig", [])])
    for channel in request.get("InputDataConfig") or ():
        name = channel["ChannelName"]
        if not _CHANNEL_NAME.fullmatch(name) or name in (".", ".."):
            raise ValidationException(
                f"The channel name {name!r} cannot be a folder. Use letters, digits, '.', '-', '_'."
            )
        source = channel["DataSource"].get("S3DataSource")
        if not source:
            raise ValidationException(
                f"The channel {name!r} has no S3DataSource, and file systems (FileSystemDataSource: EFS, FSx) are not "
                "emulated. Put the data into S3."
            )
        if reads_pipe(channel, request):
            continue
        if source["S3DataType"] == "AugmentedManifestFile":
            raise ValidationException(
                f"The channel {name!r} has S3DataType AugmentedManifestFile, which can only be used if the channel's "
                "input mode is Pipe."
            )
        if channel.get("CompressionType") == "Gzip":
            raise ValidationException(
                f"The channel {name!r} has CompressionType Gzip, which is used only in Pipe input mode. In any other, "
                "leave CompressionType unset or set it to None."
            )


def check_rules(request: Request) -> None:
    """Check the rules of a new or updated request, together with the profiler that some of them need.

    Raises:
        ValidationException, ResourceLimitExceeded.
    """
    if fault := describe_fault(request):
        raise ValidationException(fault)
    rules = list_rules(request)
    if len(rules) > MAX_RULES:
        raise ResourceLimitExceeded(
            f"A training job may have at most {MAX_RULES} rules; this request has {len(rules)} in "
            "DebugRuleConfigurations and ProfilerRuleConfigurations."
        )
    require_unique("RuleConfigurationName", [rule["RuleConfigurationName"] for rule in rules], " within a training job")


def require_unique(what: str, names: Iterable[str], where: str = "") -> None:
    """Raise ``ValidationException`` if a name occurs more than once."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValidationException(f"{what} must be unique{where}. Used more than once: {', '.join(twice)}.")
