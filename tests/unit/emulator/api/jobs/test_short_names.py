from itertools import product

import pytest

from emulator.api.jobs.short_names import choose_named
from smdebug.profiler.analysis.notebook_utils.training_job import choose_named as choose_in_smdebug

KNOWN = ["tb-2026", "m-outb", "tb", "digits-1", "digits-10", "x-digits-1", "Tb"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tb", ["tb"]),
        ("tb-", ["tb-2026"]),
        ("t", ["tb-2026", "tb"]),
        ("outb", ["m-outb"]),
        ("digits-1", ["digits-1"]),
        ("digits", ["digits-1", "digits-10"]),
        ("its-10", ["digits-10"]),
        ("igits-1", ["digits-1", "digits-10", "x-digits-1"]),
        ("T", ["Tb"]),
        ("%", []),
        ("", []),
    ],
)
def test_what_begins_so_goes_before_what_has_it_anywhere(text: str, found: list[str]) -> None:
    assert choose_named(text, KNOWN, str) == found


def test_a_name_of_several_regions_means_them_all() -> None:
    known = [("us-east-1", "job"), ("eu-west-1", "job"), ("us-east-1", "job-2")]
    assert choose_named("job", known, lambda each: each[1]) == known[:2]


def test_smdebug_chooses_as_the_emulator_does() -> None:
    texts = ["", *KNOWN, *("".join(letters) for size in (1, 2, 3) for letters in product("tbd1-", repeat=size))]
    for text in texts:
        assert choose_in_smdebug(text, KNOWN) == choose_named(text, KNOWN, str), text
