"""Verdict of a rule evaluation, and its file."""

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path

from smdebug.storage.output import write_whole_file

ISSUES_FOUND = "IssuesFound"
NO_ISSUES_FOUND = "NoIssuesFound"
ERROR = "Error"
# In the details of NoIssuesFound where the rule could not have found one: sdk_compat.emulator_client looks for it.
JUDGED_NOTHING = "judged nothing."
# A user's rule may raise an error with a text of any length, but at most 64 KiB of the verdict's file are read.
_MOST_DETAILS = 4096


@dataclass(frozen=True)
class Verdict:
    """The result of a rule evaluation.

    Attributes:
        status: RuleEvaluationStatus: IssuesFound, NoIssuesFound or Error.
        details: StatusDetails.
        step: global step at which the condition was met; None otherwise.
    """

    status: str
    details: str
    step: int | None = None

    def _repr_html_(self) -> str:
        colour = {ISSUES_FOUND: "#b42318", ERROR: "#b42318", NO_ISSUES_FOUND: "#14652f"}.get(self.status, "inherit")
        details = escape(self.details).replace("\n", "<br>")
        return f'<p><strong style="color:{colour}">{escape(self.status)}</strong></p><p>{details}</p>'


def write_verdict(verdict: Verdict, path: Path) -> None:
    """Write the verdict's file atomically, so that a reader never sees a part of it."""
    details = verdict.details[:_MOST_DETAILS]
    content = {"RuleEvaluationStatus": verdict.status, "StatusDetails": details, "Step": verdict.step}
    write_whole_file(str(path), [json.dumps(content).encode()])
