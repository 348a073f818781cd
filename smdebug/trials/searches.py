"""Searches for the tensors of a trial, by collection, regex or name."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from smdebug.exceptions import SMDebugValueError

COLLECTION, REGEX, NAME = "collection", "regex", "tensor"


@dataclass
class Searches:
    """Tells a rule that judged tensors from one that asked for some that were never saved.

    Attributes:
        found: number of questions that were answered with a tensor.
        in_vain: the questions without an answer, as pairs of what the tensors were chosen by and its text.
    """

    found: int = 0
    in_vain: dict[tuple[str, str], None] = field(default_factory=dict)

    def count(self, chosen_by: str, text: str, *, found: bool) -> None:
        """Count a question."""
        if found:
            self.found += 1
        else:
            self.in_vain[chosen_by, text] = None


def compile_patterns(regex: str | Iterable[Any]) -> list[re.Pattern[str]]:
    """Compile a regex, or several in lists with any nesting; raises SMDebugValueError for an invalid one."""
    if isinstance(regex, Iterable) and not isinstance(regex, str):
        return [pattern for part in regex for pattern in compile_patterns(part)]
    try:
        return [re.compile(regex)]
    except re.error as error:
        raise SMDebugValueError(f"{regex!r} is not a valid regular expression: {error}.") from error
