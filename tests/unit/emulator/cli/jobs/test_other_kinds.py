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
