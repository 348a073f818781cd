"""Waits for conditions in tests."""

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Found = TypeVar("Found")

ENDED = {"Completed", "Failed", "Stopped"}


def has_ended(job: Mapping[str, Any]) -> bool:
    """Whether a training job, as it is described, has ended, and all its rules with it."""
    rules = [*job.get("DebugRuleEvaluationStatuses", []), *job.get("ProfilerRuleEvaluationStatuses", [])]
    running = [each for each in rules if each["RuleEvaluationStatus"] in {"InProgress", "Stopping"}]
    return job["TrainingJobStatus"] in ENDED and not running


def wait_until(condition: Callable[[], Found], what: object = "", *, seconds: float = 180) -> Found:
    """Ask until the answer is true, and return it.

    Args:
        condition: is asked every hundredth of a second; one that takes long, such as a request, less often, because
            what it asks needs the processors, too.
        what: is waited for; a function is called when it is too late, and says how far things are.
        seconds: after which the test fails: only a machine at a standstill needs them.
    """
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if found := condition():
            return found
        now = time.monotonic()
        assert now < deadline, f"waited {seconds} s: {what() if callable(what) else what}"
        time.sleep(min(max(0.01, 9 * (now - asked)), 0.5))
