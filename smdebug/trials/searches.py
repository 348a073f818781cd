"""What a trial was asked for, and whether it had any of it."""

from dataclasses import dataclass, field

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
