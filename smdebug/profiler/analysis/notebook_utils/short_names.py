"""Names of training jobs in short: which of several names a user means by a part of one."""

from collections.abc import Sequence


def choose_named(text: str, known: Sequence[str]) -> list[str]:
    """Return the names that ``text`` may mean: that name; else those that begin so; else those that have it in them.

    An empty text means nothing.

    >>> choose_named("tb", ["m-outb", "tb-2026"])
    ['tb-2026']
    """
    if not text:
        return []
    begins = [name for name in known if name.startswith(text)]
    return [name for name in begins if name == text] or begins or [name for name in known if text in name]
