"""Test of lists of processing jobs, of which some are deleted meanwhile."""

from types import SimpleNamespace
from typing import Any

from emulator.exceptions import ValidationException
from emulator.operations.processing_jobs import list_processing_jobs


def test_a_rule_whose_training_job_is_gone_is_left_out() -> None:
    def describe(job: str) -> dict[str, str]:
        if job == "gone":
            raise ValidationException("Requested resource not found.")
        return {"ProcessingJobName": job}

    processing = SimpleNamespace(list_page=lambda *_: (["gone", "there"], "next"), describe=describe)
    context: Any = SimpleNamespace(region="us-east-1", jobs=SimpleNamespace(processing=processing))
    assert list_processing_jobs({}, context) == {
        "ProcessingJobSummaries": [{"ProcessingJobName": "there"}],
        "NextToken": "next",
    }
