"""Seconds of a training job by phase, from recorded moments."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from emulator.jobs.model.rule_evaluation import RuleEvaluation
from emulator.jobs.model.training_job import SecondaryStatus, TrainingJob

Phase = Literal[
    "waiting for a slot",
    "earlier attempts",
    "inputs",
    "start",
    "imports",
    "first step",
    "training",
    "uploads",
    "stopping",
    "rules' last look",
]
INPUTS = "inputs"
"""Moment at which the inputs of an attempt are there, and its containers start."""
# Moments that a container reports, as smdebug's moments.py names them, with the phase that each of them ends.
REPORTED: Mapping[str, Phase] = {"script": "start", "framework": "imports", "step": "first step"}
_ENDS_OF_TRAINING: tuple[SecondaryStatus, ...] = ("Uploading", "Stopping", "Interrupted", "Restarting")


def parse_moments(content: bytes) -> dict[str, int]:
    """Parse the moments that a host's processes have reported, in milliseconds since the epoch.

    Of each name the first counts; of frameworks the last before the first step. A line that is none is ignored.
    """
    found: dict[str, list[int]] = {}
    for line in content.decode("ascii", "replace").splitlines():
        name, _, time_ms = line.partition(" ")
        if name in REPORTED and time_ms.isascii() and time_ms.isdigit() and len(time_ms) <= 15:
            found.setdefault(name, []).append(int(time_ms))
    moments = {name: min(times) for name, times in found.items()}
    if "step" in moments and (before := [each for each in found.get("framework", ()) if each <= moments["step"]]):
        moments["framework"] = max(before)
    return moments


def list_spent_seconds(
    job: TrainingJob, evaluations: Sequence[RuleEvaluation], moments: Mapping[str, int], now_ms: int
) -> list[tuple[Phase, float]]:
    """List a job's phases with their seconds, in their order. What no moment was recorded of belongs to the next one.

    Together they are the time from the job's creation to its end, or to now, and to the last verdict of its rules.

    Args:
        job: the job.
        evaluations: its rule evaluations.
        moments: the recorded moments of its last attempt, in milliseconds since the epoch.
        now_ms: the current time.
    """
    end_ms = job.transitions[-1].start_ms if job.ended else now_ms
    begin_ms = job.creation_ms
    for each in job.transitions:
        if each.status in ("Interrupted", "Restarting"):
            begin_ms = end_ms if each.end_ms is None else each.end_ms
    spent: list[tuple[Phase, int]] = [
        ("waiting for a slot", _count_pending(job, job.creation_ms, end_ms)),
        ("earlier attempts", begin_ms - job.creation_ms - _count_pending(job, job.creation_ms, begin_ms)),
    ]
    last_ms = begin_ms
    for phase, at_ms in _list_ends(job, moments, begin_ms, end_ms):
        reached_ms = min(max(at_ms, last_ms), end_ms)
        spent.append((phase, reached_ms - last_ms - _count_pending(job, last_ms, reached_ms)))
        last_ms = reached_ms
    verdicts_ms = [each.end_ms for each in evaluations if each.end_ms is not None]
    if job.ended and len(verdicts_ms) == len(evaluations):
        spent.append(("rules' last look", max(verdicts_ms, default=end_ms) - end_ms))
    return [(phase, milliseconds / 1000) for phase, milliseconds in spent if milliseconds > 0]


def _list_ends(job: TrainingJob, moments: Mapping[str, int], begin_ms: int, end_ms: int) -> Iterator[tuple[Phase, int]]:
    """Yield the phases of the last attempt, each with its end."""
    stages = {each.status: each.start_ms for each in job.transitions if each.start_ms >= begin_ms}
    trained_ms = min((at_ms for status, at_ms in stages.items() if status in _ENDS_OF_TRAINING), default=end_ms)
    # An earlier attempt's moments stay until this one has its own.
    own = {name: at_ms for name, at_ms in moments.items() if begin_ms <= at_ms <= trained_ms}
    started_ms = stages.get("Training")
    # A container may build its environment before the training begins.
    before_ms = trained_ms if started_ms is None else started_ms
    yield "inputs", own.get(INPUTS, before_ms)
    yield "start", own.get("script", before_ms)
    if started_ms is not None:
        for name in ("framework", "step"):
            if name in own:
                yield REPORTED[name], own[name]
        yield "training", trained_ms
    yield ("stopping" if "Stopping" in stages else "uploads"), end_ms


def _count_pending(job: TrainingJob, begin_ms: int, end_ms: int) -> int:
    """Return the milliseconds between two times in which a job has waited for a slot."""
    waits = ((each.start_ms, each.end_ms or end_ms) for each in job.transitions if each.status == "Pending")
    return sum(max(0, min(until_ms, end_ms) - max(from_ms, begin_ms)) for from_ms, until_ms in waits)
