"""Tests of a job that is exported and imported again."""

import json
from pathlib import Path
from typing import Any

import pytest

from emulator.api.jobs.job_exports import (
    give_record,
    parse_moments,
    parse_record,
    parse_traces,
    parse_warnings,
    take_record,
)
from emulator.api.jobs.training_jobs import describe
from tests.integration.emulator.jobs.job_harness import REGION, open_job_harness


def test_an_imported_job_spent_the_same_seconds_as_the_exported_one(tmp_path: Path) -> None:
    with open_job_harness(tmp_path) as harness:
        harness.run(harness.request())
        job = harness.jobs.training.get(REGION, "job")
        begun = next(each.start_ms for each in job.transitions if each.status == "Training")
        harness.jobs.services.ledger.save_moments(job.arn, {"script": begun, "framework": begun + 1, "step": begun + 2})
        before = describe(harness.jobs, job)
        account = harness.jobs.services
        record = json.loads(json.dumps(give_record(account, job), default=str))
        harness.jobs.training.delete(REGION, job.name)
        imported, evaluations = parse_record(record)
        rest = parse_warnings(record), parse_moments(record), parse_traces(record)
        take_record(account, imported, evaluations, record, *rest)
        after = describe(harness.jobs, harness.jobs.training.get(REGION, job.name))
    assert "imports" in {each["phase"] for each in before["spent"]}
    assert after["spent"] == before["spent"]
    assert parse_moments({}) == {}, "a record of an older version"


@pytest.mark.parametrize(
    "damaged",
    [
        {"events": [{"service": "EventBridge"}]},
        {"events": [{"service": "S", "region": "r", "content": {}, "timeMs": 1, "deliveries": [{}]}]},
        {"logs": [{"group": "g", "stream": "s", "lines": [["x", "text"]]}]},
        {"logs": [None]},
        {"metrics": [{"name": "loss", "value": "high", "timestamp_ms": 1, "dimensions": {}, "unit": "None"}]},
    ],
)
def test_a_damaged_record_is_refused_before_anything_is_stored(damaged: dict[str, Any]) -> None:
    with pytest.raises((TypeError, KeyError, ValueError, AttributeError)):
        parse_traces(damaged)
