"""Table of durations."""

import pytest

from tests.durations import tabulate

LOG = """
== slowest durations ==
30.00s call     tests/end_to_end/test_a.py::test_one[docker-a b]
10.00s setup    tests/end_to_end/test_a.py::test_one[docker-a b]
5.00s call     tests/end_to_end/test_b.py::test_two
5.00s call     tests/unit/smdebug/rules/test_c.py::Test::test_three
"""


def test_folders_are_listed_by_their_seconds() -> None:
    assert tabulate(LOG).splitlines()[2:] == [
        "| `end_to_end` | 45 | 90% | 2 | `test_a.py` 40 s |",
        "| `unit/smdebug` | 5 | 10% | 1 | `test_c.py` 5 s |",
    ]


def test_a_log_without_durations_is_refused() -> None:
    with pytest.raises(ValueError, match="--durations=0"):
        tabulate("3 passed in 1 s")
