"""Rule evaluation records: processing jobs with their status transitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from emulator.jobs.model.processing_job import build_processing_job_arn
from emulator.jobs.model.training_job import UndeclaredTransitionError

RuleEvaluationStatus = Literal["InProgress", "NoIssuesFound", "IssuesFound", "Error", "Stopping", "Stopped"]

# The statuses that a rule container's verdict may have.
VERDICT_STATUSES: frozenset[str] = frozenset({"NoIssuesFound", "IssuesFound", "Error"})

TRANSITIONS: Mapping[RuleEvaluationStatus, frozenset[str]] = {
    # Directly to Stopped: a rule whose training job never started has no container to stop.
    "InProgress": VERDICT_STATUSES | {"Stopping", "Stopped"},
    # A verdict that was reached before the signal arrived counts.
    "Stopping": VERDICT_STATUSES | {"Stopped"},
    "NoIssuesFound": frozenset(),
    "IssuesFound": frozenset(),
    "Error": frozenset(),
    "Stopped": frozenset(),
}

# A rule that fires is a Completed processing job; its finding is the exit message.
PROCESSING_JOB_STATUSES: Mapping[RuleEvaluationStatus, str] = {
    "InProgress": "InProgress",
    "NoIssuesFound": "Completed",
    "IssuesFound": "Completed",
    "Error": "Failed",
    "Stopping": "Stopping",
    "Stopped": "Stopped",
}

MAX_STATUS_DETAILS = 1024
_NAME_PART = 26
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9-]+")


@dataclass(frozen=True, slots=True)
class RuleEvaluation:
    """A processing job that evaluates one DebugRuleConfiguration.

    Attributes:
        name: the processing job's.
        position: place of the configuration in the request, from 0.
        configuration: the DebugRuleConfiguration, as validated.
        start_ms, end_ms: when its container started and when its status became final.
        Times are epoch milliseconds.
    """

    account_id: str
    region: str
    name: str
    training_job_name: str
    position: int
    configuration: Mapping[str, Any]
    creation_ms: int
    last_modified_ms: int
    status: RuleEvaluationStatus = "InProgress"
    status_details: str | None = None
    start_ms: int | None = None
    end_ms: int | None = None

    @property
    def arn(self) -> str:
        """The processing job's ARN."""
        return build_processing_job_arn(self.account_id, self.region, self.name)

    @property
    def rule_configuration_name(self) -> str:
        """RuleConfigurationName."""
        return str(self.configuration["RuleConfigurationName"])

    @property
    def processing_job_status(self) -> str:
        """ProcessingJobStatus."""
        return PROCESSING_JOB_STATUSES[self.status]

    @property
    def ended(self) -> bool:
        """Whether the status is final."""
        return not TRANSITIONS[self.status]

    def start(self, now_ms: int) -> RuleEvaluation:
        """Return the evaluation with its container running."""
        return replace(self, start_ms=now_ms, last_modified_ms=now_ms)

    def transition(
        self, status: RuleEvaluationStatus, now_ms: int, *, status_details: str | None = None
    ) -> RuleEvaluation:
        """Return the evaluation with a new status.

        Raises:
            UndeclaredTransitionError: The table does not allow the transition.
        """
        if status not in TRANSITIONS[self.status]:
            raise UndeclaredTransitionError(f"Rule evaluation {self.name!r} cannot go from {self.status} to {status}.")
        return replace(
            self,
            status=status,
            status_details=status_details[:MAX_STATUS_DETAILS] if status_details else self.status_details,
            last_modified_ms=now_ms,
            end_ms=None if TRANSITIONS[status] else now_ms,
        )

    def begin_stop(self, now_ms: int) -> RuleEvaluation:
        """Return the evaluation as Stopping, or unchanged if it has ended or is already stopping."""
        return self.transition("Stopping", now_ms) if self.status == "InProgress" else self

    def end(self, status: RuleEvaluationStatus, now_ms: int, status_details: str | None) -> RuleEvaluation:
        """Return the evaluation with its final status, or unchanged if it has ended."""
        return self if self.ended else self.transition(status, now_ms, status_details=status_details)

    def end_unstarted(self, now_ms: int) -> RuleEvaluation:
        """Return an evaluation that never starts as Stopped, or unchanged if it has ended."""
        return self.end("Stopped", now_ms, "The evaluation ended before its container started.")


def build_processing_job_name(training_job_name: str, rule_configuration_name: str, suffix: str) -> str:
    """``<job[:26]>-<rule[:26]>-<suffix>``, with what a processing job's name cannot hold made a hyphen.

    A part that ends with a hyphen keeps it: clients put the name together from the same parts.

    Args:
        training_job_name: of the job that is evaluated.
        rule_configuration_name: any text.
        suffix: 8 hex digits.
    """
    rule = _NOT_IN_A_NAME.sub("-", rule_configuration_name[:_NAME_PART])
    return f"{training_job_name[:_NAME_PART]}-{rule}-{suffix}"


def new_rule_evaluation(
    account_id: str,
    region: str,
    training_job_name: str,
    position: int,
    configuration: Mapping[str, Any],
    suffix: str,
    now_ms: int,
) -> RuleEvaluation:
    """Build an evaluation that waits for its training job to start."""
    name = build_processing_job_name(training_job_name, configuration["RuleConfigurationName"], suffix)
    return RuleEvaluation(account_id, region, name, training_job_name, position, configuration, now_ms, now_ms)
