"""Restrictions of warm starts of tuning jobs, as AWS documents them.

Pure functions. A parent is compared definition by definition: those of one name, or the only ones of both.
"""

from collections.abc import Mapping
from typing import Any

from emulator.jobs.model.tuning_job import TuningJob

MAX_CHANGES = 10
# What the service adds itself; SDKs that attach to a tuning job send it back.
_OF_THE_SERVICE = "_tuning_objective_metric"


def find_warm_start_violation(job: TuningJob, parent: TuningJob) -> str | None:
    """Say why ``job`` cannot start from ``parent``; None if it can."""
    of_parent = {each.get("DefinitionName"): each for each in parent.definitions}
    for definition in job.definitions:
        earlier = of_parent.get(definition.get("DefinitionName"))
        if earlier is not None and (violation := _compare(job, definition, parent, earlier)):
            return violation
    return None


def _compare(
    job: TuningJob, definition: Mapping[str, Any], parent: TuningJob, earlier: Mapping[str, Any]
) -> str | None:
    objective, before = job.find_objective(definition), parent.find_objective(earlier)
    if objective != before:
        return (
            "The objective metric of a warm start tuning job must be that of its parents: it is "
            f"{_describe_objective(objective)}, and that of {parent.name} is {_describe_objective(before)}."
        )
    ranges, earlier_ranges = job.list_ranges(definition), parent.list_ranges(earlier)
    static, earlier_static = _list_static(definition), _list_static(earlier)
    if ranges.keys() | static.keys() != earlier_ranges.keys() | earlier_static.keys():
        return (
            "The set of tunable plus static HyperParameter names is not the same across current and parent tuning jobs."
            " Please ensure this set is constant when warm starting. Note that previously static HyperParameters can be"
            " tuned in warm start jobs and vice versa."
        )
    for name in sorted(ranges.keys() & earlier_ranges.keys()):
        if ranges[name][0] != earlier_ranges[name][0]:
            return (
                "The type of a hyperparameter must not change between parent jobs and a warm start tuning job: "
                f"{name!r} is in {ranges[name][0]}, and in {earlier_ranges[name][0]} of {parent.name}."
            )
    changes = sum(_count_changes(name, value, earlier_static, earlier_ranges) for name, value in static.items())
    if changes > MAX_CHANGES:
        return (
            "Changes of hyperparameters from tunable to static, and of values of static ones, cannot be more than "
            f"{MAX_CHANGES} in a warm start tuning job: compared with {parent.name} there are {changes}, where each "
            "value of a categorical hyperparameter, and both values of a static one, count."
        )
    return None


def _describe_objective(objective: Mapping[str, Any]) -> str:
    return f"{objective.get('Type')} {objective.get('MetricName')!r}"


def _list_static(definition: Mapping[str, Any]) -> dict[str, str]:
    static = definition.get("StaticHyperParameters") or {}
    return {name: value for name, value in static.items() if name != _OF_THE_SERVICE}


def _count_changes(
    name: str, value: str, static: Mapping[str, str], ranges: Mapping[str, tuple[str, Mapping[str, Any]]]
) -> int:
    """Count as AWS does: each value that a categorical parameter had, both values of a static one, one of a number."""
    if name in ranges:
        return len(ranges[name][1].get("Values", "1"))
    return 2 if static[name] != value else 0
