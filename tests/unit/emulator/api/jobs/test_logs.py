from types import SimpleNamespace

import pytest

from emulator.api.jobs.logs import choose_lines, cut_invocation
from emulator.moto_services.cloudwatch.logs import Log


def make_log(texts: list[str]) -> Log:
    return Log([SimpleNamespace(timestamp=0, message=text) for text in texts])


LINES = make_log([f"step {at} {'Loss' if at % 2 else 'time'}" for at in range(10)])


@pytest.mark.parametrize(
    ("words", "most", "after", "before", "numbers"),
    [
        ("", 3, None, None, [7, 8, 9]),
        ("", 3, 0, None, [0, 1, 2]),
        ("", 3, None, 7, [4, 5, 6]),
        ("loss", 3, None, None, [5, 7, 9]),
        ("loss", 3, 4, None, [5, 7, 9]),
        ("", 3, 10, None, []),
        ("", 3, 99, 99, []),
        ("", 0, None, None, []),
    ],
)
def test_lines_are_chosen_by_number_and_words(
    words: str, most: int, after: int | None, before: int | None, numbers: list[int]
) -> None:
    assert [at for at, _ in choose_lines(LINES, words, most, after, before)] == numbers


def test_lines_of_many_bytes_are_cut_but_never_to_nothing() -> None:
    assert len(choose_lines(make_log(["x" * 3_000_000] * 3), "", 10, 0, None)) == 1


def test_one_invocation_is_cut_out_of_a_function_s_log() -> None:
    texts = ["START RequestId: a", "one", "REPORT RequestId: a", "START RequestId: b", "two", "REPORT RequestId: b"]
    log = make_log(texts)
    assert [line.message for _, line in cut_invocation(log, "b")] == texts[3:]
    assert cut_invocation(log, "c") == []
