"""Warnings of a request, of a job's end, and of its containers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from emulator.jobs.model.warnings import JobWarning, build_warning
from emulator.jobs.staging.job_files import JobFolder
from emulator.jobs.staging.job_warnings import (
    ReportedWarnings,
    find_failure_warnings,
    find_processing_warnings,
    find_request_warnings,
    find_result_warnings,
)
from emulator.jobs.staging.opt_ml import WARNINGS
from emulator.jobs.store.ledger import Ledger

RULES: dict[str, Any] = {"DebugRuleConfigurations": [{"RuleConfigurationName": "a"}]}
HOOK = {"S3OutputPath": "s3://bucket"}


def build_request(instance_type: str = "ml.m5.large", **members: Any) -> dict[str, Any]:
    request: dict[str, Any] = {
        "TrainingJobName": "job",
        "AlgorithmSpecification": {"TrainingImage": "image"},
        "ResourceConfig": {"InstanceType": instance_type, "InstanceCount": 2},
    }
    return request | members


def say(warnings: Any) -> list[tuple[str, str]]:
    return [(each.code, each.text) for each in warnings]


def test_a_request_as_it_should_be_is_warned_of_nothing() -> None:
    assert say(find_request_warnings(build_request(), None, None)) == []


def test_what_is_known_when_a_job_is_created() -> None:
    collections = [
        {"CollectionName": "losses", "CollectionParameters": {"save_interval": each, "include_regex": each}}
        for each in ("1", "5")
    ]
    request = build_request("ml.g5.xlarge", DebugHookConfig={"CollectionConfigurations": collections})
    assert say(find_request_warnings(request, "Asked 2.3, runs 2.13.", "It was not tested.")) == [
        ("ClientNotTried", "It was not tested."),
        ("ImageSubstituted", "Asked 2.3, runs 2.13."),
        ("NoGpu", "ml.g5.xlarge: no GPU here. The job runs on the CPU."),
        (
            "HookParameterIgnored",
            (
                "CollectionConfigurations gives a collection different parameters: save_interval of losses is 1, then "
                "5. As on AWS, the last one counts. SDK version 2 sends the collections of the hook and those of each "
                "rule (collections_to_save) in random order: give them the same parameters."
            ),
        ),
    ]


def test_save_parameters_that_a_later_entry_leaves_out_are_those_of_the_hook() -> None:
    collections = [
        {"CollectionName": "losses", "CollectionParameters": {"save_steps": "1", "reductions": "min"}},
        {"CollectionName": "losses"},
    ]
    (warning,) = find_request_warnings(
        build_request(DebugHookConfig={"CollectionConfigurations": collections}), None, None
    )
    assert "different parameters: save_steps of losses is 1, then what the hook has. As on AWS" in warning.text


def test_rules_without_a_hook_are_named_when_the_job_is_created() -> None:
    (warning,) = find_request_warnings(build_request(**RULES), None, None)
    assert warning.code == "RuleWithoutHook"
    assert warning.text.startswith("a will read tensors, but the request has no DebugHookConfig: ")
    assert say(find_request_warnings(build_request(DebugHookConfig=HOOK, **RULES), None, None)) == []


def test_what_is_known_when_a_processing_job_is_created() -> None:
    cluster = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 1}
    request = {"ProcessingJobName": "job", "ProcessingResources": {"ClusterConfig": cluster}}
    assert say(find_processing_warnings(request, "Asked 2.3, runs 2.13.", "It was not tested.")) == [
        ("ClientNotTried", "It was not tested."),
        ("ImageSubstituted", "Asked 2.3, runs 2.13."),
        ("NoGpu", "ml.g5.xlarge: no GPU here. The job runs on the CPU."),
    ]


def test_each_type_of_instance_groups_is_named_once() -> None:
    groups = [
        {"InstanceGroupName": name, "InstanceType": kind, "InstanceCount": 1}
        for name, kind in (("a", "ml.p3.2xlarge"), ("b", "ml.m5.large"), ("c", "ml.p3.2xlarge"))
    ]
    request = build_request(ResourceConfig={"InstanceGroups": groups})
    assert [code for code, _ in say(find_request_warnings(request, None, None))] == ["NoGpu"]
    assert say(find_request_warnings(request, None, None, hands_gpus=True)) == []


@pytest.mark.parametrize(
    ("members", "saved", "warned"),
    [
        ({}, False, False),
        ({"DebugHookConfig": HOOK}, False, False),
        ({"DebugHookConfig": HOOK} | RULES, False, True),
        ({"DebugHookConfig": HOOK} | RULES, True, False),
        ({"DebugHookConfig": HOOK | {"HookParameters": {"save_interval": "1"}}}, False, True),
        ({"DebugHookConfig": HOOK | {"CollectionConfigurations": [{"CollectionName": "losses"}]}}, False, True),
        (RULES, False, False),
    ],
)
def test_a_job_that_asked_for_tensors_and_saved_none(members: dict[str, Any], saved: bool, warned: bool) -> None:
    found = find_result_warnings(build_request(**members), [], (), lambda: saved)
    assert ("HookSavedNothing" in dict(say(found))) is warned


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("HookSavedNothing", "Nothing was saved: no registered model was called."),
        ("TensorsDropped", "Not saved: the hook (ValueError: save_interval: 'ten' is not a whole number.)."),
    ],
)
def test_a_hook_that_has_said_why_it_saved_nothing_needs_no_second_word(code: str, text: str) -> None:
    request = build_request(DebugHookConfig=HOOK, **RULES)
    said = [JobWarning(code, text, "")]
    assert list(find_result_warnings(request, said, (), lambda: False)) == []


def test_metrics_that_were_never_found() -> None:
    definitions = [{"Name": name, "Regex": f"{name}=(.*)"} for name in ("loss", "accuracy")]
    request = build_request(AlgorithmSpecification={"MetricDefinitions": definitions})
    assert say(find_result_warnings(request, [], {"loss"}, lambda: False)) == [
        (
            "MetricNeverMatched",
            (
                "The metric 'accuracy' has no value: its Regex 'accuracy=(.*)' did not capture a number in any line "
                "of the log."
            ),
        )
    ]


def test_requirements_that_were_not_installed() -> None:
    reason = 'AlgorithmError: InstallRequirementsError:\nExitCode 1\nErrorMessage "No matching distribution"'
    assert say(find_failure_warnings(reason)) == [
        (
            "RequirementsNotInstalled",
            (
                'The requirements.txt of the script could not be installed: ExitCode 1 ErrorMessage "No matching '
                'distribution".'
            ),
        )
    ]
    assert list(find_failure_warnings("AlgorithmError: exit code: 1")) == []


class MemoryLedger:
    def __init__(self) -> None:
        self.stored: list[tuple[str, Sequence[JobWarning]]] = []

    def warn(self, arn: str, warnings: Sequence[JobWarning]) -> None:
        self.stored.append((arn, warnings))


def test_what_a_container_reports_is_stored_as_it_comes(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    reported = ReportedWarnings(JobFolder(tmp_path / "ml"), "arn", cast("Ledger", ledger))
    reported.read()
    path = tmp_path / "ml" / WARNINGS
    path.parent.mkdir(parents=True)
    path.write_text('{"Code": "TensorsDropped", "Text": "a"}\n{"Code": "Tensors')
    for _ in range(2):
        reported.read()
    assert ledger.stored == [
        ("arn", [JobWarning("TensorsDropped", "a", build_warning("TensorsDropped", said="").remedy)])
    ]
    path.write_bytes(b"\0" * (1 << 20))
    reported.read()
    assert ledger.stored[1:] == [("arn", [])]


def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    ledger = MemoryLedger()
    files = JobFolder(tmp_path / "ml")
    path = tmp_path / "ml" / WARNINGS
    path.parent.mkdir(parents=True)
    (tmp_path / "secret").write_text('{"Code": "TensorsDropped", "Text": "secret"}\n')
    path.symlink_to(tmp_path / "secret")
    ReportedWarnings(files, "arn", cast("Ledger", ledger)).read()
    assert ledger.stored == []
    assert files.refused == {WARNINGS: "is a symbolic link"}
