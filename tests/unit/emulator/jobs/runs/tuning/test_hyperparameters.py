"""Tests of hyperparameter suggestions and early stopping, by strategy."""

import math
from typing import Any

import pytest

from emulator.jobs.model.tuning_job import TuningJob
from emulator.jobs.runs.tuning.hyperparameters import Trial, is_hopeless, suggest

RANGES: dict[str, list[dict[str, Any]]] = {
    "IntegerParameterRanges": [{"Name": "epochs", "MinValue": "2", "MaxValue": "9"}],
    "ContinuousParameterRanges": [
        {"Name": "lr", "MinValue": "0.0001", "MaxValue": "1", "ScalingType": "Logarithmic"},
        {"Name": "momentum", "MinValue": "0.9", "MaxValue": "0.999", "ScalingType": "ReverseLogarithmic"},
        {"Name": "x", "MinValue": "-5", "MaxValue": "5"},
    ],
    "CategoricalParameterRanges": [{"Name": "kind", "Values": ["a", "b"]}],
}


def build_job(strategy: str, ranges: dict[str, Any] | None = None, **configuration: Any) -> TuningJob:
    request = {
        "HyperParameterTuningJobConfig": {
            "Strategy": strategy,
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ParameterRanges": RANGES if ranges is None else ranges,
            **configuration,
        },
        "TrainingJobDefinition": {},
    }
    return TuningJob(
        account_id="1", region="r", name="t", id="ab12", request=request, creation_ms=0, last_modified_ms=0
    )


def try_out(job: TuningJob, count: int) -> list[dict[str, str]]:
    """The parameters of so many trainings, whose loss is a bowl around x = 1."""
    trials: list[Trial] = []
    for _ in range(count):
        parameters = suggest(job, job.definitions[0], trials)
        assert parameters is not None
        loss = (float(parameters.get("x", 0)) - 1) ** 2
        trials.append(Trial(parameters, running=False, value=loss, values=[loss]))
    return [dict(trial.parameters) for trial in trials]


@pytest.mark.parametrize("strategy", ["Random", "Bayesian", "Hyperband"])
def test_suggestions_lie_in_their_ranges_and_come_again_after_a_restart(strategy: str) -> None:
    tried = try_out(build_job(strategy), 12)
    assert tried == try_out(build_job(strategy), 12), "nothing but the trainings there were decides"
    for parameters in tried:
        assert parameters.keys() == {"epochs", "lr", "momentum", "x", "kind"}
        assert 2 <= int(parameters["epochs"]) <= 9
        assert 0.0001 <= float(parameters["lr"]) <= 1
        assert 0.9 <= float(parameters["momentum"]) <= 0.999
        assert -5 <= float(parameters["x"]) <= 5
        assert parameters["kind"] in ("a", "b")
    assert len({parameters["x"] for parameters in tried}) == 12
    assert try_out(build_job(strategy, RandomSeed=7), 2) != tried[:2]


def test_logarithmic_scaling_tries_small_values_as_often() -> None:
    tried = try_out(build_job("Random"), 40)
    exponents = [math.log10(float(parameters["lr"])) for parameters in tried]
    assert sum(exponent < -2 for exponent in exponents) in range(10, 31)


def test_bayesian_search_comes_nearer_to_the_best_than_random() -> None:
    ranges = {"ContinuousParameterRanges": [{"Name": "x", "MinValue": "-5", "MaxValue": "5"}]}

    def find_mean_distance(strategy: str) -> float:
        tried = try_out(build_job(strategy, ranges), 40)[20:]
        return sum(abs(float(parameters["x"]) - 1) for parameters in tried) / len(tried)

    assert find_mean_distance("Bayesian") < 0.5 * find_mean_distance("Random")


def test_a_grid_is_tried_once() -> None:
    ranges = {"CategoricalParameterRanges": [{"Name": "a", "Values": ["1", "2"]}, {"Name": "b", "Values": ["x", "y"]}]}
    job = build_job("Grid", ranges)
    tried = try_out(job, 4)
    assert sorted(each["a"] + each["b"] for each in tried) == ["1x", "1y", "2x", "2y"]
    trials = [Trial(each, running=True, value=None) for each in tried]
    assert suggest(job, job.definitions[0], trials) is None


def test_what_parents_tried_outside_of_the_ranges_is_used_as_it_fits() -> None:
    job = build_job("Bayesian")
    odd = {"epochs": "99", "lr": "7", "momentum": "0.5", "x": "1e9", "kind": "z"}
    assert suggest(job, job.definitions[0], [Trial(odd, running=False, value=1.0)]) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "configuration"),
    [
        ("Random", {"TrainingJobEarlyStoppingType": "Auto"}),
        ("Hyperband", {"StrategyConfig": {"HyperbandStrategyConfig": {"MinResource": 1, "MaxResource": 9}}}),
    ],
)
def test_a_training_that_is_far_worse_is_hopeless(strategy: str, configuration: dict[str, Any]) -> None:
    job = build_job(strategy, **configuration)
    parameters = try_out(job, 1)[0]
    good = [Trial(parameters, running=False, value=0.1, values=[1 - at / 10 for at in range(9)]) for _ in range(30)]

    def judge(values: list[float]) -> set[bool]:
        # Hyperband's brackets differ in their patience: one place of several is in a strict one.
        found = set()
        for more in range(5):
            trials = [*good, *good[:more], Trial(parameters, running=True, value=None, values=values)]
            found.add(is_hopeless(job, job.definitions[0], trials, len(trials) - 1))
        return found

    assert True in judge([50.0] * 9)
    assert judge([0.01] * 9) == {False}
    assert judge([]) == {False}
