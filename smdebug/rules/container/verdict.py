"""How a rule evaluation ended, and the file that says so."""

import json
from dataclasses import dataclass
from pathlib import Path

ISSUES_FOUND = "IssuesFound"
NO_ISSUES_FOUND = "NoIssuesFound"
ERROR = "Error"
# A user's rule may raise with any text, and who reads the verdict's file reads no more than 64 KiB of it.
_MOST_DETAILS = 4096


@dataclass(frozen=True)
class Verdict:
    """The end of a rule evaluation.

    Attributes:
        status: RuleEvaluationStatus: IssuesFound, NoIssuesFound or Error.
        details: StatusDetails.
        step: global step at which the condition was met; None otherwise.
    """

    status: str
    details: str
    step: int | None = None


def write_verdict(verdict: Verdict, path: Path) -> None:
    """Write the verdict's file: whoever sees it sees all of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".tmp")
    details = verdict.details[:_MOST_DETAILS]
    content = {"RuleEvaluationStatus": verdict.status, "StatusDetails": details, "Step": verdict.step}
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(path)
