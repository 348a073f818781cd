from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sdk_compat.job_objects import read_job_name
from sdk_compat.pytest_plugin.emulator import find_test
from sdk_compat.pytest_plugin.report import draw, format_table, format_warnings, shorten, write_report

JOB: dict[str, Any] = {
    "name": "digits-2026-11-22-02-20-37-001",
    "region": "eu-west-1",
    "status": "Failed",
    "test": "tests/test_digits.py::test_loss",
    "reason": "AlgorithmError: it | broke",
    "warnings": [{"code": "NoGpu", "text": "ml.p3 has <GPUs>.", "remedy": "Expect longer times."}],
    "rules": [
        {
            "name": "Overfit",
            "status": "IssuesFound",
            "details": "at <step> 3\nWhat to do:\n- train less",
            "plot": "<svg/>",
            "series": [
                {
                    "Quantity": "loss_0",
                    "Steps": [0, 1, 3],
                    "Values": [0.5, "NaN", 2],
                    "Threshold": 1,
                    "FiresWhen": "above",
                },
            ],
        },
        {"name": "AllZero", "status": "NoIssuesFound", "details": "", "plot": None, "series": []},
    ],
}
BARE: dict[str, Any] = {
    "name": "b",
    "region": "us-east-1",
    "status": "Completed",
    "test": "",
    "reason": "",
    "warnings": [],
    "rules": [],
}


def test_table_is_as_wide_as_it_may_be() -> None:
    lines = format_table([JOB, BARE], 60)
    assert [line.split() for line in lines[1:]] == [
        ["digits-2…22-02-20-37-001", "Failed", "Overfit", "IssuesFound"],
        ["AllZero", "NoIssuesFound"],
        ["b", "Completed", "-", "-"],
    ]
    assert max(map(len, lines)) == 59


def test_what_ran_in_place_of_something_requested_is_shown_below_the_job() -> None:
    briefs = ["asked 2.3.0, runs 2.13.0", "", "ml.p4d.24xlarge: no GPU here"]
    substituted = {**JOB, "warnings": [{"code": "c", "text": "t", "remedy": "r", "brief": each} for each in briefs]}
    lines = format_table([substituted, BARE], 80)
    assert lines[2].split() == ["AllZero", "NoIssuesFound"]
    assert lines[3] == "  asked 2.3.0, runs 2.13.0; ml.p4d.24xlarge: no GPU here"
    assert lines[4].split() == ["b", "Completed", "-", "-"]


def test_warnings_stand_below_the_names_of_their_jobs() -> None:
    assert format_warnings([BARE], 60) == []
    assert format_warnings([JOB, BARE], 50) == [
        "",
        "Warnings",
        "digits-2026-11-22-02-20-37-001:",
        "  NoGpu: ml.p3 has <GPUs>. Expect longer times.",
    ]


def test_a_warning_of_several_jobs_is_said_once() -> None:
    image = {"code": "ImageSubstituted", "text": "asked 2.3.0, runs 2.13.0.", "remedy": "Ask for it."}
    gpu = {"code": "NoGpu", "text": "ml.p3 has GPUs.", "remedy": "Wait."}
    jobs = [{**BARE, "name": name, "warnings": [image, gpu][: 1 + (name == "c")]} for name in "abcdb"]
    assert format_warnings(jobs, 80) == [
        "",
        "Warnings",
        "a, b, c and 1 more:",
        "  ImageSubstituted: asked 2.3.0, runs 2.13.0. Ask for it.",
        "c:",
        "  NoGpu: ml.p3 has GPUs. Wait.",
    ]


def test_reports_hold_the_warnings(tmp_path: Path) -> None:
    for name, line in (
        ("report.md", r"- NoGpu: ml.p3 has \<GPUs\>. Expect longer times."),
        ("report.html", "<strong>NoGpu</strong>: ml.p3 has &lt;GPUs&gt;. Expect longer times."),
    ):
        write_report(tmp_path / name, [JOB, BARE])
        assert line in (tmp_path / name).read_text()


@pytest.mark.parametrize(("width", "expected"), [(30, "digits-2026-11-22-02-20-37-001"), (12, "digi…-37-001")])
def test_names_are_cut_in_the_middle(width: int, expected: str) -> None:
    assert shorten("digits-2026-11-22-02-20-37-001", width) == expected


def test_markdown_has_the_plots_beside_it(tmp_path: Path) -> None:
    write_report(tmp_path / "new" / "report.md", [JOB, BARE])
    text = (tmp_path / "new" / "report.md").read_text()
    assert (
        "| digits-2026-11-22-02-20-37-001 | Failed | Overfit | IssuesFound | tests/test\\_digits.py::test\\_loss |\n"
        "|  |  | AllZero | NoIssuesFound |  |" in text
    )
    assert "- AlgorithmError: it \\| broke\n- Overfit: at \\<step\\> 3\n  - What to do:\n  - train less\n" in text
    plot = "report-plots/eu-west-1-digits-2026-11-22-02-20-37-001-Overfit.svg"
    assert text.endswith(f"[Overfit]({plot})\n\n- `▁ █` loss\\_0: 0.5 at step 0, 2 at step 3; fires above 1\n")
    assert (tmp_path / "new" / plot).read_text() == "<svg/>"


def test_each_mode_is_drawn_by_itself(tmp_path: Path) -> None:
    steps, values, modes = [0, 1, 2, 3], [2.0, 9.0, 1.0, 8.0], ["TRAIN", "EVAL"] * 2
    series = {
        "Quantity": "q",
        "Steps": steps,
        "Values": values,
        "Modes": modes,
        "Threshold": None,
        "FiresWhen": "above",
    }
    rule = {"name": "r", "status": "NoIssuesFound", "details": "", "plot": "<svg/>", "series": [series]}
    write_report(tmp_path / "report.md", [{**BARE, "rules": [rule]}])
    text = (tmp_path / "report.md").read_text()
    assert text.endswith("- `█▁` q (TRAIN): 2 at step 0, 1 at step 2\n- `█▁` q (EVAL): 9 at step 1, 8 at step 3\n")


def test_the_value_of_a_single_step_is_said_once(tmp_path: Path) -> None:
    series = {
        "Quantity": "q",
        "Steps": [4],
        "Values": [2.0],
        "Modes": ["TRAIN"],
        "Threshold": 1.0,
        "FiresWhen": "above",
    }
    rule = {"name": "r", "status": "IssuesFound", "details": "", "plot": "<svg/>", "series": [series]}
    write_report(tmp_path / "report.md", [{**BARE, "rules": [rule]}])
    assert (tmp_path / "report.md").read_text().endswith("- `▁` q: 2 at step 4; fires above 1\n")


@pytest.mark.parametrize(
    ("values", "drawn"),
    [([], ""), ([3, 3], "▁▁"), ([0, float("inf"), None, 7], "▁  █"), (list(range(600)), 60)],
)
def test_numbers_are_drawn_in_letters(values: list[Any], drawn: str | int) -> None:
    assert draw(values) == drawn if isinstance(drawn, str) else len(draw(values)) == drawn


def test_html_is_one_file(tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", [JOB])
    text = (tmp_path / "report.html").read_text()
    assert "<td>Overfit</td><td>IssuesFound</td>" in text
    assert "<p>at &lt;step&gt; 3\nWhat to do:\n- train less</p>" in text
    assert text.count("data:image/svg+xml;base64,PHN2Zy8+") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_run_without_jobs_is_reported(tmp_path: Path) -> None:
    write_report(tmp_path / "report.md", [])
    assert (tmp_path / "report.md").read_text().endswith("No training job was created.\n")


@pytest.mark.parametrize(
    "job",
    [
        "name",
        {"TrainingJobName": "name"},
        SimpleNamespace(latest_training_job=SimpleNamespace(name="name")),
        SimpleNamespace(_latest_training_job=SimpleNamespace(training_job_name="name")),
        SimpleNamespace(training_job_name="name"),
    ],
)
def test_a_job_is_whatever_has_its_name(job: Any) -> None:
    assert read_job_name(job) == "name"


def test_an_estimator_that_was_not_fitted_is_reported() -> None:
    with pytest.raises(TypeError, match=r"whose fit\(\) was called"):
        read_job_name(SimpleNamespace(latest_training_job=None))


def test_the_table_names_tests_where_they_fit() -> None:
    header, first, second, _ = format_table([JOB, BARE], 100)
    assert header.split()[-1] == "Test"
    assert first.endswith("  test_loss")
    assert second.endswith("NoIssuesFound")


def test_a_job_is_of_the_test_that_ran_when_it_was_created() -> None:
    tests = [(10.0004, "a"), (20.0, "b")]
    assert [find_test(tests, at) for at in (9.0, 10.0, 19.9, 20.0, 30.0)] == ["", "a", "a", "b", "b"]
