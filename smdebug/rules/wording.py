"""Numbers and counted nouns in sentences."""


def count_noun(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count_noun(1, "step"), count_noun(2, "step"), count_noun(0, "loss", )
    ('1 step', '2 steps', '0 losses')
    """
    plural = f"{noun}es" if noun.endswith(("s", "x", "ch")) else f"{noun}s"
    return f"{count} {noun if count == 1 else plural}"
