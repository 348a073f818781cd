"""Folders below /opt/ml that the service gives to processing jobs and rules."""

from typing import Any

import pytest

from emulator.jobs.model.rule_evaluation import new_rule_evaluation
from emulator.jobs.staging import processing, rule_configuration


def test_a_processing_job_has_what_its_request_names() -> None:
    request = {
        "ProcessingInputs": [
            {"InputName": "a", "S3Input": {"LocalPath": "/opt/ml/processing/input/a/"}},
            {"InputName": "b", "AppManaged": True, "S3Input": {"LocalPath": "/opt/ml/processing/input/b"}},
        ],
        "ProcessingOutputConfig": {
            "Outputs": [{"OutputName": "o", "S3Output": {"LocalPath": "/opt/ml/processing/out"}}]
        },
    }
    own = processing.list_own_folders(request)
    assert set(own) == {"config", "output", "processing/input/a", "processing/out"}


@pytest.mark.parametrize(
    ("member", "added"),
    [
        ({}, {"processing/output/rule"}),
        ({"LocalPath": "/opt/ml/mine"}, {"mine"}),
        ({"LocalPath": "/elsewhere"}, set()),
        ({"LocalPath": "/opt/ml/../x"}, set()),
    ],
)
def test_a_rule_has_its_configuration_and_its_files(member: dict[str, Any], added: set[str]) -> None:
    configuration = {"RuleConfigurationName": "R", "RuleEvaluatorImage": "i", **member}
    evaluation = new_rule_evaluation("1", "us-east-1", "job", 0, configuration, "0123abcd", 0)
    assert set(rule_configuration.list_own_folders(evaluation)) == {"config", "output"} | added
