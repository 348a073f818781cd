"""The record of a warning, its codes, and what a container may report."""

import json
from string import Formatter

import pytest

from emulator.jobs.model.warnings import (
    MOST_WARNINGS,
    WARNING_KINDS,
    WARNINGS_HEADER,
    build_header,
    build_warning,
    describe_warnings,
    parse_reported,
)
from emulator.settings import name_variable
from smdebug import job_warnings
from smdebug.environment import WARNINGS_PATH_ENV_STR


def report(code: str, text: str) -> bytes:
    return json.dumps({"Code": code, "Text": text}).encode() + b"\n"


def test_containers_report_the_codes_that_smdebug_has() -> None:
    codes = {value for name, value in vars(job_warnings).items() if name.isupper() and isinstance(value, str)}
    assert codes - {WARNINGS_PATH_ENV_STR} == {code for code, kind in WARNING_KINDS.items() if kind.reported}


@pytest.mark.parametrize("code", WARNING_KINDS)
def test_every_code_says_what_it_is_and_what_to_do(code: str) -> None:
    members = (member for _, member, _, _ in Formatter().parse(WARNING_KINDS[code].text) if member)
    details = dict.fromkeys((member.removesuffix("!r") for member in members), "x{0}y")
    warning = build_warning(code, **details)
    assert warning.text
    assert warning.remedy.endswith(".")
    assert warning.line == f"{warning.text} {warning.remedy}"
    assert WARNING_KINDS[code].meaning.endswith(".")


def test_a_starved_job_is_told_of_the_lower_priority_of_local_processes() -> None:
    variable = name_variable("job_niceness")
    assert f"unless the emulator was started with {variable}=0" in WARNING_KINDS["ContainerStarved"].remedy


@pytest.mark.parametrize(
    ("code", "details", "brief"),
    [
        ("ImageSubstituted", {"said": "asked 2.3.0, runs 2.13.0. The request is for x."}, "asked 2.3.0, runs 2.13.0"),
        ("ImageSubstituted", {"said": "x runs in its place."}, "x runs in its place"),
        ("NoGpu", {"instance_type": "ml.p4d.24xlarge"}, "ml.p4d.24xlarge: no GPU here"),
        ("HookParameterIgnored", {"said": "a. b"}, ""),
    ],
)
def test_substitutions_are_reported_in_brief(code: str, details: dict[str, str], brief: str) -> None:
    warning = build_warning(code, **details)
    assert warning.brief == brief
    assert [each["brief"] for each in describe_warnings([warning])] == [brief]


def test_what_is_reported_twice_is_one_warning() -> None:
    content = report("TensorsDropped", "a") + report("TensorsDropped", "b") + report("TensorsDropped", "a")
    assert [(each.code, each.text) for each in parse_reported(content)] == [
        ("TensorsDropped", "a"),
        ("TensorsDropped", "b"),
    ]
    assert {each.remedy for each in parse_reported(content)} == {WARNING_KINDS["TensorsDropped"].remedy}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{not json\n",
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
        b"null\n",
        b'"TensorsDropped"\n',
        report("Unheard", "of"),
        report("ImageSubstituted", "which only the emulator knows"),
        report("TensorsDropped", " \n "),
        b'{"Code": "TensorsDropped", "Text": 7}\n',
        b'{"Code": ["TensorsDropped"], "Text": "x"}\n',
        report("TensorsDropped", "cut off")[:-1],
    ],
)
def test_what_is_not_a_report_is_left_out(line: bytes) -> None:
    good = report("RuleWithoutCollection", "none")
    assert [each.code for each in parse_reported(good + line)] == ["RuleWithoutCollection"]


def test_texts_are_one_line_that_can_be_stored_and_shown() -> None:
    (found,) = parse_reported(b'{"Code": "TensorsDropped", "Text": "a\\n\\u001b[31mb\\ud800 \\u202e"}\n')
    assert found.text == "a \N{REPLACEMENT CHARACTER}[31mb\\ud800 \N{REPLACEMENT CHARACTER}"
    (long,) = parse_reported(report("TensorsDropped", "x" * 5000))
    assert len(long.text) == 1000
    assert len(parse_reported(b"".join(report("TensorsDropped", str(each)) for each in range(500)))) == MOST_WARNINGS


def test_the_header_is_ascii_on_one_line() -> None:
    assert build_header([]) == {}
    header = build_header([build_warning("ClientNotTried", said="größer\r\nx-injected: 1")])
    assert list(header) == [WARNINGS_HEADER]
    assert header[WARNINGS_HEADER].isascii()
    assert header[WARNINGS_HEADER].isprintable()
    assert json.loads(header[WARNINGS_HEADER])[0]["text"] == "größer x-injected: 1."
