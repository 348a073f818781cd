import pytest

from emulator.cli.jobs import other_kinds


def test_a_processing_job_with_what_it_reads_and_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    job = {
        "name": "clean",
        "region": "us-east-1",
        "status": "Failed",
        "failureReason": "AlgorithmError: " + "a long reason " * 6,
        "exitMessage": None,
        "trainingJob": None,
        "image": "my-image:1",
        "links": {"input raw": "s3://b/raw", "output table": "s3://b/table"},
    }
    lines = list(other_kinds._format_processing_job(job))
    assert lines[:2] == ["clean  (us-east-1)", "Failed"]
    assert lines[2].startswith("Why           AlgorithmError: a long")
    assert lines[3].startswith(" " * 14)
    assert max(map(len, lines)) <= 80
    assert lines[-3:] == ["Image         my-image:1", "input raw     s3://b/raw", "output table  s3://b/table"]


@pytest.mark.parametrize(("direction", "order"), [("Minimize", ["b", "a", "c"]), ("Maximize", ["a", "b", "c"])])
def test_the_best_trial_is_first_and_those_without_a_value_are_last(direction: str, order: list[str]) -> None:
    trials = [
        {"name": name, "status": "Completed", "value": value, "creationMs": at, "parameters": parameters}
        for at, (name, value, parameters) in enumerate(
            [("c", None, {}), ("a", 0.5, {"rate": "0.1"}), ("b", -1234567.0, {"rate": "0.2", "depth": "3"})]
        )
    ]
    job = {"direction": direction, "objective": "loss", "trialJobs": trials}
    heading, *rows = (line.split() for line in other_kinds._format_trials(job).splitlines())
    assert heading == ["Trial", "Status", "loss", "rate", "depth"]
    assert [row[0] for row in rows] == order
    assert sorted(rows) == [
        ["a", "Completed", "0.5", "0.1", "-"],
        ["b", "Completed", "-1.2346e+06", "0.2", "3"],
        ["c", "Completed", "-", "-", "-"],
    ]


def test_a_tuning_job_without_trials_says_so() -> None:
    job = {"direction": "Minimize", "objective": "loss", "trialJobs": []}
    assert other_kinds._format_trials(job) == "No trial has started yet."
