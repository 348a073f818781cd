"""Warnings of a job, from its request, its containers and its end."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from emulator.jobs.model.warnings import MOST_REPORTED_BYTES, JobWarning, build_warning, parse_reported
from emulator.jobs.staging.hook_parameters import find_differing, find_ignored, find_slips
from emulator.jobs.staging.hosts import list_hosts
from emulator.jobs.staging.instance_types import has_gpus
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.staging.opt_ml import WARNINGS
from emulator.jobs.staging.rule_parameters import find_image_slips, find_rule_slips
from emulator.jobs.store.ledger import Ledger

# The name of this failure in /opt/ml/output/failure, as AWS's toolkit for training images writes it.
_REQUIREMENTS_ERROR = "InstallRequirementsError"


def find_request_warnings(
    request: Mapping[str, Any],
    substitution: str | None,
    client_note: str | None,
    *,
    hands_gpus: bool = False,
    has_image: Callable[[str], bool] = lambda _image: True,
) -> Iterator[JobWarning]:
    """Yield the warnings about a request, before the job runs.

    Args:
        request: the members of CreateTrainingJob's request.
        substitution: how the image differs from the requested one; None if it does not.
        client_note: the text of a warning about the client; None if there is none.
        hands_gpus: whether containers get GPUs.
        has_image: returns whether a local image runs for a name.
    """
    types = {host.instance_type for host in list_hosts(request) if host.instance_type}
    yield from _find_common_warnings(set() if hands_gpus else types, substitution, client_note)
    if differing := list(find_differing(request)):
        yield build_warning(
            "HookParameterIgnored",
            said=f"CollectionConfigurations gives a collection different parameters: {'; '.join(differing)}. As on "
            "AWS, the last one counts. SDK version 2 sends the collections of the hook and those of each rule "
            "(collections_to_save) in random order: give them the same parameters.",
        )
    for slip in find_ignored(request):
        yield build_warning("HookParameterIgnored", said=slip)
    for slip in find_slips(request):
        yield build_warning("HookParameterDoubtful", said=slip)
    for slip in (*find_rule_slips(request), *find_image_slips(request, has_image)):
        yield build_warning("RuleDoubtful", said=slip)
    rules = [rule["RuleConfigurationName"] for rule in request.get("DebugRuleConfigurations") or ()]
    if rules and "DebugHookConfig" not in request:
        yield build_warning("RuleWithoutHook", rules=", ".join(rules))


def find_processing_warnings(
    request: Mapping[str, Any], substitution: str | None, client_note: str | None, *, hands_gpus: bool = False
) -> Iterator[JobWarning]:
    """Yield the warnings about a request for a processing job; see ``find_request_warnings``."""
    types = {request["ProcessingResources"]["ClusterConfig"].get("InstanceType")} - {None}
    yield from _find_common_warnings(set() if hands_gpus else types, substitution, client_note)


def _find_common_warnings(
    instance_types: Collection[str], substitution: str | None, client_note: str | None
) -> Iterator[JobWarning]:
    if client_note:
        yield build_warning("ClientNotTried", said=client_note)
    if substitution:
        yield warn_of_image(substitution)
    for each in sorted(filter(has_gpus, instance_types)):
        yield build_warning("NoGpu", instance_type=each)


def warn_of_image(substitution: str) -> JobWarning:
    """Build the warning about an image that is used instead of the requested one."""
    return build_warning("ImageSubstituted", said=substitution)


def find_result_warnings(
    request: Mapping[str, Any],
    known: Iterable[JobWarning],
    metrics: Collection[str],
    has_tensors: Callable[[], bool],
) -> Iterator[JobWarning]:
    """Yield the warnings about a completed training job.

    Args:
        request: the members of CreateTrainingJob's request.
        known: the job's warnings so far. If the hook has already reported why it saved nothing, or that it could not
            save, that is not repeated.
        metrics: the names of the metrics that have a value.
        has_tensors: returns whether S3 has any tensors of the job.
    """
    is_explained = any(each.code in ("HookSavedNothing", "TensorsDropped") for each in known)
    if asks_for_tensors(request) and not is_explained and not has_tensors():
        yield build_warning("HookSavedNothing")
    for each in request["AlgorithmSpecification"].get("MetricDefinitions") or ():
        if each["Name"] not in metrics:
            yield build_warning("MetricNeverMatched", name=each["Name"], regex=each["Regex"])


def find_failure_warnings(failure_reason: str) -> Iterator[JobWarning]:
    """Yield the warnings about a failed training job that add to its FailureReason."""
    _, name, rest = failure_reason.partition(_REQUIREMENTS_ERROR)
    if name:
        yield build_warning("RequirementsNotInstalled", said=rest.lstrip(": \n"))


def asks_for_tensors(request: Mapping[str, Any]) -> bool:
    """Return whether a request configures the saving of tensors.

    A DebugHookConfig with only a path does not count: the SDK sends one even if the user configures no hook.

    >>> asks_for_tensors({"DebugHookConfig": {"S3OutputPath": "s3://bucket"}})
    False
    """
    hook = request.get("DebugHookConfig") or {}
    return bool(hook.get("CollectionConfigurations") or hook.get("HookParameters")) or bool(
        hook and request.get("DebugRuleConfigurations")
    )


class ReportedWarnings:
    """The warnings that one container reports. Any thread may read them. Each warning is stored once."""

    def __init__(self, files: JobFolder, arn: str, ledger: Ledger) -> None:
        """Prepare to read.

        Args:
            files: the files of the container.
            arn: ARN of the training job that the warnings belong to.
            ledger: stores the warnings.
        """
        self._files = files
        self._arn = arn
        self._ledger = ledger
        self._read = b""

    def read(self) -> None:
        """Store the warnings that the container has reported so far. A refused or missing file counts as empty."""
        content = self._files.read_small_file(WARNINGS, MOST_REPORTED_BYTES)
        if content and content != self._read:
            self._ledger.warn(self._arn, parse_reported(content))
            self._read = content
