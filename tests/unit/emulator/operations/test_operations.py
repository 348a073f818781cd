from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import emulator.operations
from emulator.operations import find_operations

if TYPE_CHECKING:
    from pathlib import Path


def test_the_operations_that_there_are() -> None:
    assert sorted(find_operations()) == [
        "AddTags",
        "CreateHyperParameterTuningJob",
        "CreateProcessingJob",
        "CreateTrainingJob",
        "DeleteHyperParameterTuningJob",
        "DeleteProcessingJob",
        "DeleteTags",
        "DeleteTrainingJob",
        "DescribeHyperParameterTuningJob",
        "DescribePipelineDefinitionForExecution",
        "DescribePipelineExecution",
        "DescribeProcessingJob",
        "DescribeTrainingJob",
        "GetSearchSuggestions",
        "ListHyperParameterTuningJobs",
        "ListPipelineExecutionSteps",
        "ListPipelineExecutions",
        "ListPipelineParametersForExecution",
        "ListProcessingJobs",
        "ListTags",
        "ListTrainingJobs",
        "ListTrainingJobsForHyperParameterTuningJob",
        "Search",
        "StartPipelineExecution",
        "StopHyperParameterTuningJob",
        "StopPipelineExecution",
        "StopProcessingJob",
        "StopTrainingJob",
        "UpdateTrainingJob",
    ]


@pytest.mark.parametrize(
    "source", ["", "def other(request, context): ...", "def fly_home(): ...", "def fly_home(context, request): ..."]
)
def test_a_file_without_its_function_is_an_error(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fly_home.py").write_text(source)
    monkeypatch.setattr(emulator.operations, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "emulator.operations.fly_home", raising=False)
    with pytest.raises(ValueError, match=r"fly_home\(request, context\)"):
        find_operations()


def test_a_new_file_is_a_new_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fly_home.py").write_text("def fly_home(request, context):\n    return {'Home': True}\n")
    monkeypatch.setattr(emulator.operations, "__path__", [str(tmp_path)])
    monkeypatch.delitem(sys.modules, "emulator.operations.fly_home", raising=False)
    operations = find_operations()
    monkeypatch.delitem(sys.modules, "emulator.operations.fly_home")
    assert list(operations) == ["FlyHome"]
