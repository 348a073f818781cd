"""Warnings of a training job, from its request, its containers and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emulator.jobs.model.warnings import MOST_REPORTED_BYTES, JobWarning, build_warning, parse_reported
from emulator.jobs.staging.hook_parameters import find_slips
from emulator.jobs.staging.hosts import list_hosts
from emulator.jobs.staging.instance_types import has_gpus
from emulator.jobs.staging.opt_ml import WARNINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from emulator.jobs.staging.job_files import JobFolder
    from emulator.jobs.store.ledger import Ledger

# How AWS's toolkit for training images names this failure in /opt/ml/output/failure.
_REQUIREMENTS_ERROR = "InstallRequirementsError"


def find_request_warnings(
    request: Mapping[str, Any], substitution: str | None, client_note: str | None
) -> Iterator[JobWarning]:
    """Find what a request is to be warned of before anything runs.

    Args:
        request: CreateTrainingJob's members.
        substitution: how the image that runs differs from the one that is asked for.
        client_note: what is to be said of the client that asks.
    """
    if client_note:
        yield build_warning("ClientNotTried", said=client_note)
    if substitution:
        yield warn_of_image(substitution)
    types = {host.instance_type for host in list_hosts(request) if host.instance_type}
    for each in sorted(filter(has_gpus, types)):
        yield build_warning("NoGpu", instance_type=each)
    if differing := _find_differing_parameters(request):
        yield build_warning("HookParameterIgnored", said="; ".join(differing))
    for slip in find_slips(request):
        yield build_warning("HookParameterDoubtful", said=slip)


def warn_of_image(substitution: str) -> JobWarning:
    """Warn of an image that stands for another."""
    return build_warning("ImageSubstituted", said=substitution)


def find_result_warnings(
    request: Mapping[str, Any],
    known: Iterable[JobWarning],
    metrics: Collection[str],
    has_tensors: Callable[[], bool],
) -> Iterator[JobWarning]:
    """Find what a training that has completed is to be warned of.

    Args:
        request: CreateTrainingJob's members.
        known: its warnings so far; a hook that has said why it saved nothing needs no second word.
        metrics: the names of those that have a value.
        has_tensors: says whether any tensors of it are in S3.
    """
    is_explained = any(each.code == "HookSavedNothing" for each in known)
    if asks_for_tensors(request) and not is_explained and not has_tensors():
        yield build_warning("HookSavedNothing")
    for each in request["AlgorithmSpecification"].get("MetricDefinitions") or ():
        if each["Name"] not in metrics:
            yield build_warning("MetricNeverMatched", name=each["Name"], regex=each["Regex"])


def find_failure_warnings(failure_reason: str) -> Iterator[JobWarning]:
    """Find what the failure of a training is to be warned of beside its FailureReason."""
    _, name, rest = failure_reason.partition(_REQUIREMENTS_ERROR)
    if name:
        yield build_warning("RequirementsNotInstalled", said=rest.lstrip(": \n"))


def asks_for_tensors(request: Mapping[str, Any]) -> bool:
    """Whether a request asks for tensors: the SDK sends a DebugHookConfig with nothing but a path without being asked.

    >>> asks_for_tensors({"DebugHookConfig": {"S3OutputPath": "s3://bucket"}})
    False
    """
    hook = request.get("DebugHookConfig") or {}
    return bool(hook.get("CollectionConfigurations") or hook.get("HookParameters")) or bool(
        hook and request.get("DebugRuleConfigurations")
    )


class ReportedWarnings:
    """The warnings of one container. Any thread may read them; what was read before is not stored again."""

    def __init__(self, files: JobFolder, arn: str, ledger: Ledger) -> None:
        """Prepare to read.

        Args:
            files: of the container.
            arn: of the training job that the warnings belong to.
            ledger: stores them.
        """
        self._files = files
        self._arn = arn
        self._ledger = ledger
        self._read = b""

    def read(self) -> None:
        """Store what the container has reported by now. A file that is refused or missing reports nothing."""
        content = self._files.read_small_file(WARNINGS, MOST_REPORTED_BYTES)
        if content and content != self._read:
            self._ledger.warn(self._arn, parse_reported(content))
            self._read = content


def _find_differing_parameters(request: Mapping[str, Any]) -> list[str]:
    """Name the parameters that a collection is given twice: each rule and the hook may configure the same one."""
    given: dict[tuple[str, str], list[str]] = {}
    for entry in (request.get("DebugHookConfig") or {}).get("CollectionConfigurations") or ():
        for key, value in (entry.get("CollectionParameters") or {}).items():
            if key != "include_regex":  # these add up
                given.setdefault((entry.get("CollectionName", ""), key), []).append(value)
    return [f"{key} of {name} is {', then '.join(all_)}" for (name, key), all_ in given.items() if len(set(all_)) > 1]
