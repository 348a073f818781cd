"""Tests of the demo's timeline in the README."""

import re

import pytest

from docs_site.demo_times import README, replace_timeline

PRINTED = """Timeline (each line is an EventBridge event)
     0.1 s  digits-sick     Starting     Preparing the instances for training
     0.1 s  digits-healthy  Starting     Preparing the instances for training
     5.6 s  digits-sick     Stopped      Training job stopped
Results
"""


def test_the_timeline_is_what_the_demo_printed_and_names_the_machine() -> None:
    readme = README.read_text(encoding="utf-8")
    assert re.search(r"^Timeline \(each line is an EventBridge event; \d+ cores, .* 20\d\d\)$", readme, re.MULTILINE)
    renewed = replace_timeline(readme, PRINTED, "9 cores, local processes, May 2031")
    block = renewed.partition("```text\n")[2].partition("```")[0].splitlines()
    assert block[0] == "Timeline (each line is an EventBridge event; 9 cores, local processes, May 2031)"
    assert [line.split()[3] for line in block[1:]] == ["Starting", "Stopped"]
    assert renewed.partition("## Install")[2] == readme.partition("## Install")[2]


def test_a_demo_that_printed_nothing_changes_nothing() -> None:
    with pytest.raises(ValueError, match="no timeline"):
        replace_timeline(README.read_text(encoding="utf-8"), "", "")
