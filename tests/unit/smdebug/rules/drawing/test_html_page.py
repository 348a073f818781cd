"""Tests of a report page's charts and tables."""

import re

from smdebug.rules.drawing.html_page import render_lines, render_matrix


def test_a_matrix_of_ten_classes_names_its_sides_once() -> None:
    drawn = render_matrix([[number + 10 * row for number in range(10)] for row in range(10)], "label", "predicted")
    cells = re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", drawn)
    classes = [str(number) for number in range(10)]
    assert cells[:13] == ["", "predicted", "label", *classes]
    # Then a line for each label: the label, and its counts.
    assert cells[13:24] == ["0", *classes]
    assert cells[-11:] == ["9", *(str(90 + number) for number in range(10))]
    assert drawn.count("predicted") == 1


def test_rounds_at_an_axis_are_whole() -> None:
    drawn = render_lines({"train": [(float(step), float(step * 100)) for step in range(8)]}, "round", "loss")
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    shown = [text for text in texts if text.isdigit()]
    assert shown[:4] == ["0", "2", "4", "6"]
    assert not [text for text in texts if "." in text or "e+" in text]
