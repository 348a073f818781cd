import pytest

from emulator.cli.tables import cut_middle, format_table, wrap

ROWS = [("Training job", "Status"), ("digits-2026-11-22-03-10-00-001", "Completed")]


def test_names_are_cut_to_the_width_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    lines = format_table(ROWS).splitlines()
    assert lines == ["Training job         Status", "digits…03-10-00-001  Completed"]
    monkeypatch.delenv("COLUMNS")
    assert format_table(ROWS).splitlines()[1] == "digits-2026-11-22-03-10-00-001  Completed"


def test_more_of_the_end_stays() -> None:
    assert cut_middle("digits-2026-11-22-03-10-00-001", 12) == "digi…-00-001"
    assert cut_middle("short", 12) == "short"


def test_text_is_wrapped_beside_its_title(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert wrap("a reason that is longer than the line\nand more", " " * 6, "Why") == [
        "Why   a reason that is longer",
        "      than the line",
        "      and more",
    ]
