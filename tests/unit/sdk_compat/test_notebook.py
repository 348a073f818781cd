import json
from types import SimpleNamespace
from typing import Any

import pytest

from sdk_compat import notebook
from sdk_compat.notebook import TrainingJob, TrainingJobs

NAME, WORDS = "digits-sick", "<script>alert(1)</script>\nsecond line"
RULE: dict[str, Any] = {
    "name": "VanishingGradient",
    "status": "IssuesFound",
    "details": WORDS,
    "endMs": 5,
    "outputUri": "s3://bucket/output/rule/",
}
JOB: dict[str, Any] = {
    "name": NAME,
    "region": "eu-west-1",
    "status": "Failed",
    "secondaryStatus": "Failed",
    "failureReason": "<b>why</b>",
    "warnings": [{"code": "NoGpu", "text": "<b>why</b>", "remedy": "nothing"}],
    "creationMs": 1_000,
    "endMs": 3_500,
    "rules": [RULE, {**RULE, "name": "Overfit", "status": "Stopped", "details": None}],
}
MEANT = {
    NAME: [JOB],
    "sick": [JOB],
    "digits": [{"name": name, "region": "eu-west-1"} for name in (NAME, f"{NAME}-2")],
}
PLOT = b"<svg xmlns='http://www.w3.org/2000/svg'/>"


@pytest.fixture(autouse=True)
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was asked for, of an emulator with one job."""
    asked: list[str] = []

    def fetch(endpoint_url: str, path: str, **query: object) -> bytes:
        assert endpoint_url == "http://emulator"
        asked.append(path)
        if path == "s3/bucket/object":
            assert query == {"key": "output/rule/plot.svg"}
            return PLOT
        if path == "job-names":
            named = MEANT.get(str(query["text"]), [])
            return json.dumps({"jobs": named, "count": len(named)}).encode()
        return json.dumps({"jobs": [JOB, {**JOB, "name": f"{NAME}-2"}]} if path == "jobs" else JOB).encode()

    monkeypatch.setattr(notebook, "_fetch", fetch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://emulator/")
    return asked


@pytest.mark.parametrize("job", [NAME, "sick", SimpleNamespace(latest_training_job=SimpleNamespace(name=NAME))])
def test_a_job_shows_its_state_rules_and_their_plots_and_no_markup_of_theirs(job: Any) -> None:
    shown = TrainingJob(job)
    html = shown._repr_html_()
    assert "✖ Failed" in html
    assert "2 s, eu-west-1" in html
    assert "▲ <bdi>VanishingGradient</bdi>: IssuesFound" in html
    assert html.count("data:image/svg+xml;base64,") == 2
    assert "http://emulator/console#/jobs/eu-west-1/digits-sick" in html
    assert "<script" not in html
    assert "<b>why" not in html
    assert "<li><strong>NoGpu</strong>: &lt;b&gt;why&lt;/b&gt; nothing</li>" in html
    assert repr(shown.rules[0]) == "RuleResult('VanishingGradient', status='IssuesFound')"
    assert repr(shown) == "TrainingJob('digits-sick', status='Failed')"


def test_jobs_are_a_table() -> None:
    html = TrainingJobs()._repr_html_()
    assert html.count("<tr>") == 3
    assert repr(TrainingJobs()) == "digits-sick  Failed\ndigits-sick-2  Failed"


def test_what_is_missing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LookupError, match="There is no training job nobody at http://emulator"):
        TrainingJob("nobody")
    with pytest.raises(LookupError, match="digits matches 2 training jobs: eu-west-1/digits-sick, eu-"):
        TrainingJob("digits")
    with pytest.raises(LookupError, match="has no training job yet"):
        TrainingJob(SimpleNamespace(latest_training_job=None))
    with pytest.raises(LookupError, match=r"Give its name; TrainingJobs\(\) shows"):
        TrainingJob("")
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    with pytest.raises(ConnectionError, match=r"%load_ext smdebug_emulator names one; .*smdebug-emulator env"):
        TrainingJobs()


def test_an_emulator_that_is_away_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(ConnectionError, match=r"at http://127\.0\.0\.1:9 does not answer"):
        TrainingJob(NAME, "http://127.0.0.1:9")
