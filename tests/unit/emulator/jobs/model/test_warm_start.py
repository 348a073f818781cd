"""Tests of the restrictions that AWS documents of warm starts."""

from typing import Any

import pytest

from emulator.jobs.model.tuning_job import TuningJob
from emulator.jobs.model.warm_start import find_warm_start_violation

COLOURS = {"Name": "colour", "Values": ["red", "blue"]}
RATE = {"Name": "rate", "MinValue": "0", "MaxValue": "1"}
OBJECTIVE = {"Type": "Minimize", "MetricName": "loss"}
NUMBERED = {f"n{at}": "1" for at in range(5)}


def build(
    static: dict[str, str],
    objective: dict[str, str] = OBJECTIVE,
    definition_name: str | None = None,
    **ranges: list[dict[str, Any]],
) -> TuningJob:
    definition: dict[str, Any] = {"StaticHyperParameters": static}
    if definition_name:
        definition["DefinitionName"] = definition_name
    named = {f"{kind}ParameterRanges": each for kind, each in ranges.items()}
    request = {
        "HyperParameterTuningJobConfig": {
            "Strategy": "Random",
            "HyperParameterTuningJobObjective": objective,
            "ParameterRanges": named,
        },
        **({"TrainingJobDefinitions": [definition]} if definition_name else {"TrainingJobDefinition": definition}),
    }
    return TuningJob(
        account_id="1", region="r", name="parent", id="0", request=request, creation_ms=0, last_modified_ms=0
    )


PARENT = build({"size": "1", **NUMBERED}, Continuous=[RATE], Categorical=[COLOURS])


@pytest.mark.parametrize(
    "child",
    [
        PARENT,
        build(
            {"rate": "0.5", **NUMBERED},
            Integer=[{"Name": "size", "MinValue": "1", "MaxValue": "9"}],
            Categorical=[COLOURS],
        ),
        build({"size": "2", **NUMBERED, "_tuning_objective_metric": "loss"}, Continuous=[RATE], Categorical=[COLOURS]),
        build({"other": "1"}, definition_name="another", Continuous=[RATE]),
    ],
    ids=["same", "static and tunable swapped", "another static value", "a definition that the parent lacks"],
)
def test_what_aws_accepts(child: TuningJob) -> None:
    assert find_warm_start_violation(child, PARENT) is None


@pytest.mark.parametrize(
    ("child", "said"),
    [
        (
            build({"size": "1"}, Continuous=[RATE], Categorical=[COLOURS]),
            "The set of tunable plus static HyperParameter",
        ),
        (
            build({"size": "1", **NUMBERED}, Integer=[RATE], Categorical=[COLOURS]),
            "'rate' is in IntegerParameterRanges, and in ContinuousParameterRanges of parent",
        ),
        (
            build(
                {"size": "1", **NUMBERED}, OBJECTIVE | {"Type": "Maximize"}, Continuous=[RATE], Categorical=[COLOURS]
            ),
            "it is Maximize 'loss', and that of parent is Minimize 'loss'",
        ),
        (
            build({"size": "1", "colour": "red", **dict.fromkeys(NUMBERED, "2")}, Continuous=[RATE]),
            "compared with parent there are 12",
        ),
    ],
    ids=["names", "type", "objective", "changes"],
)
def test_what_aws_refuses(child: TuningJob, said: str) -> None:
    assert said in str(find_warm_start_violation(child, PARENT))
