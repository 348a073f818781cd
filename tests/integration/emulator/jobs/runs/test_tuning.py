"""Tests of whole hyperparameter tuning job runs.

Their training jobs are a few lines of Python.
"""

import itertools
from typing import Any

import pytest

from emulator.exceptions import ResourceInUse, ResourceNotFound, ValidationException
from tests.integration.emulator.jobs.job_harness import REGION, JobHarness
from tests.waiting import ENDED, wait_until

# Prints the objective that its hyperparameters have, and lives as long as they say.
SCRIPT = """
p = json.loads((ml / "input/config/hyperparameters.json").read_text())
print(f"loss={float(p['x']) ** 2};", flush=True)
if p.get("then") == "wait":
    time.sleep(600)
"""


def build_request(harness: JobHarness, values: list[str], name: str = "tune", **members: Any) -> dict[str, Any]:
    """A grid over ``x``, one training at a time unless ``members`` say otherwise."""
    training = harness.request(script=SCRIPT)
    training["AlgorithmSpecification"]["MetricDefinitions"] = [{"Name": "loss", "Regex": "loss=(.*?);"}]
    del training["TrainingJobName"]
    return {
        "HyperParameterTuningJobName": name,
        "HyperParameterTuningJobConfig": {
            "Strategy": "Grid",
            "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
            "ResourceLimits": {"MaxParallelTrainingJobs": 1},
            "ParameterRanges": {"CategoricalParameterRanges": [{"Name": "x", "Values": values}]},
            **members.pop("config", {}),
        },
        "TrainingJobDefinition": {**training, "StaticHyperParameters": {"fixed": "1", **members.pop("static", {})}},
    } | members


def describe(harness: JobHarness, name: str = "tune") -> dict[str, Any]:
    return harness.jobs.tuning.describe(harness.jobs.tuning.get(REGION, name))


def wait(harness: JobHarness, name: str = "tune") -> dict[str, Any]:
    wait_until(
        lambda: describe(harness, name)["HyperParameterTuningJobStatus"] in ENDED, lambda: describe(harness, name)
    )
    return describe(harness, name)


def list_trainings(harness: JobHarness, **members: Any) -> list[dict[str, Any]]:
    return list(harness.jobs.tuning.list_training_jobs(REGION, "tune", members)[0])


@pytest.mark.slow
def test_a_job_is_found_by_the_name_in_its_arn(harness: JobHarness) -> None:
    parent = harness.jobs.tuning.create(REGION, build_request(harness, ["1"], name="Tune-A"))
    asked = parent.arn.rpartition("/")[2]
    assert asked == "tune-a"
    assert wait(harness, asked)["HyperParameterTuningJobName"] == "Tune-A"
    assert len(harness.jobs.tuning.list_training_jobs(REGION, asked, {})[0]) == 1
    with pytest.raises(ResourceInUse):
        harness.jobs.tuning.create(REGION, build_request(harness, ["1"], name=asked))
    warm = {
        "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": asked}],
        "WarmStartType": "IdenticalDataAndAlgorithm",
    }
    harness.jobs.tuning.create(REGION, build_request(harness, ["1", "2"], name="Warm", WarmStartConfig=warm))
    assert wait(harness, "warm")["HyperParameterTuningJobStatus"] == "Completed"
    harness.jobs.tuning.stop(REGION, asked)
    harness.jobs.tuning.delete(REGION, asked)
    with pytest.raises(ResourceNotFound):
        describe(harness, "Tune-A")


@pytest.mark.slow
def test_a_list_is_sorted_by_name_unless_asked_otherwise(harness: JobHarness) -> None:
    for name in ("later", "earlier"):
        harness.jobs.tuning.create(REGION, build_request(harness, ["1"], name=name))
        wait(harness, name)
    assert [job.name for job in harness.jobs.tuning.list_page(REGION, {})[0]] == ["earlier", "later"]
    by_time = harness.jobs.tuning.list_page(REGION, {"SortBy": "CreationTime"})[0]
    assert [job.name for job in by_time] == ["later", "earlier"]


@pytest.mark.slow
def test_the_overall_best_of_a_warm_start_may_be_a_parents(harness: JobHarness) -> None:
    harness.jobs.tuning.create(REGION, build_request(harness, ["2"], name="parent"))
    wait(harness, "parent")
    parents = [{"HyperParameterTuningJobName": "parent"}]
    for child, kind, value, overall in (
        ("worse", "IdenticalDataAndAlgorithm", "3", "parent"),
        ("better", "IdenticalDataAndAlgorithm", "1", "better"),
        ("other", "TransferLearning", "3", "other"),
    ):
        warm = {"ParentHyperParameterTuningJobs": parents, "WarmStartType": kind}
        harness.jobs.tuning.create(REGION, build_request(harness, [value], name=child, WarmStartConfig=warm))
        done = wait(harness, child)
        assert done["OverallBestTrainingJob"]["TuningJobName"] == overall
        assert done["BestTrainingJob"]["TunedHyperParameters"] == {"x": value}


@pytest.mark.slow
def test_a_grid_is_trained_one_after_the_other(harness: JobHarness) -> None:
    request = build_request(harness, ["3", "1", "2"], Tags=[{"Key": "team", "Value": "a"}])
    request["TrainingJobDefinition"] |= {"DebugHookConfig": harness.hook(), "Environment": {"LEVEL": "3"}}
    harness.jobs.tuning.create(REGION, request)
    done = wait(harness)
    assert done["HyperParameterTuningJobStatus"] == "Completed", done
    assert done["TrainingJobStatusCounters"]["Completed"] == 3
    assert done["ObjectiveStatusCounters"] == {"Succeeded": 3, "Pending": 0, "Failed": 0}
    assert done["HyperParameterTuningJobConfig"] == request["HyperParameterTuningJobConfig"]
    best = done["BestTrainingJob"]
    assert best["TunedHyperParameters"] == {"x": "1"}
    assert best["FinalHyperParameterTuningJobObjectiveMetric"] == {"MetricName": "loss", "Value": 1.0}

    trainings = list_trainings(harness, SortBy="FinalObjectiveMetricValue")
    assert [each["TunedHyperParameters"]["x"] for each in trainings] == ["1", "2", "3"]
    assert [each["ObjectiveStatus"] for each in trainings] == ["Succeeded"] * 3
    by_time = list_trainings(harness, SortBy="CreationTime")
    assert [each["TrainingJobName"][:9] for each in by_time] == ["tune-001-", "tune-002-", "tune-003-"]
    for before, after in itertools.pairwise(by_time):
        assert after["CreationTime"] >= before["TrainingEndTime"]
    page, token = harness.jobs.tuning.list_training_jobs(REGION, "tune", {"MaxResults": 2})
    rest, end = harness.jobs.tuning.list_training_jobs(REGION, "tune", {"MaxResults": 2, "NextToken": token})
    assert ([each["TrainingJobName"] for each in [*page, *rest]], end) == (
        [each["TrainingJobName"] for each in by_time],
        None,
    )
    assert list_trainings(harness, StatusEquals="Failed") == []

    training = harness.describe(best["TrainingJobName"])
    assert training["TuningJobArn"] == done["HyperParameterTuningJobArn"]
    assert training["HyperParameters"] == {"fixed": "1", "x": "1", "_tuning_objective_metric": "loss"}
    assert training["DebugHookConfig"] == harness.hook()
    assert training["Environment"] == {"LEVEL": "3"}
    assert harness.jobs.tags.list_all(training["TrainingJobArn"]) == [{"Key": "team", "Value": "a"}]
    found, _, _ = harness.jobs.training.search(
        REGION, {"SearchExpression": {"Filters": [{"Name": "TuningJobArn", "Value": training["TuningJobArn"]}]}}
    )
    assert len(found) == 3

    child = build_request(
        harness,
        [],
        "child",
        config={
            "Strategy": "Bayesian",
            "ResourceLimits": {"MaxNumberOfTrainingJobs": 1, "MaxParallelTrainingJobs": 1},
            "ParameterRanges": {"CategoricalParameterRanges": [{"Name": "x", "Values": ["0", "1", "9"]}]},
        },
        WarmStartConfig={
            "ParentHyperParameterTuningJobs": [{"HyperParameterTuningJobName": "tune"}],
            "WarmStartType": "IdenticalDataAndAlgorithm",
        },
    )
    harness.jobs.tuning.create(REGION, child)
    assert wait(harness, "child")["OverallBestTrainingJob"]["TuningJobName"] in ("child", "tune")
    child["WarmStartConfig"]["ParentHyperParameterTuningJobs"][0]["HyperParameterTuningJobName"] = "nobody"
    with pytest.raises(ValidationException, match="The parent 'nobody'"):
        harness.jobs.tuning.create(REGION, child)
    child["WarmStartConfig"]["ParentHyperParameterTuningJobs"][0]["HyperParameterTuningJobName"] = "tune"
    child["TrainingJobDefinition"]["StaticHyperParameters"]["more"] = "1"
    with pytest.raises(
        ValidationException, match="The set of tunable plus static HyperParameter names is not the same"
    ):
        harness.jobs.tuning.create(REGION, child)

    assert [job.name for job in harness.jobs.tuning.list_page(REGION, {"NameContains": "un"})[0]] == ["tune"]
    harness.jobs.tuning.delete(REGION, "tune")
    with pytest.raises(ResourceNotFound):
        describe(harness)
    harness.jobs.close()
    kind = "SageMaker HyperParameter Tuning Job State Change"
    events = [event["detail"] for event in harness.publisher.events if event["detail-type"] == kind]
    assert [each["HyperParameterTuningJobStatus"] for each in events] == ["InProgress", "Completed"] * 2
    assert isinstance(events[1]["BestTrainingJob"]["CreationTime"], int)


@pytest.mark.slow
def test_stopping_stops_the_trainings(harness: JobHarness) -> None:
    limits = {"ResourceLimits": {"MaxParallelTrainingJobs": 2}}
    request = build_request(harness, ["1", "2", "3"], config=limits, static={"then": "wait"})
    harness.jobs.tuning.create(REGION, request)
    wait_until(lambda: len(list_trainings(harness)) == 2, lambda: describe(harness))
    with pytest.raises(ResourceInUse, match="is in status InProgress"):
        harness.jobs.tuning.delete(REGION, "tune")
    harness.jobs.tuning.stop(REGION, "tune")
    assert wait(harness)["HyperParameterTuningJobStatus"] == "Stopped"
    assert [each["TrainingJobStatus"] for each in list_trainings(harness)] == ["Stopped"] * 2
    harness.jobs.tuning.stop(REGION, "tune")


def test_a_tuning_job_without_any_success_fails(harness: JobHarness) -> None:
    values = [str(at) for at in range(9)]
    request = build_request(harness, values)
    request["TrainingJobDefinition"]["AlgorithmSpecification"]["TrainingImage"] = "nobody-built:1"
    harness.jobs.tuning.create(REGION, request)
    done = wait(harness)
    assert done["HyperParameterTuningJobStatus"] == "Failed"
    assert done["FailureReason"].startswith("No training job succeeded after 5 attempts.")
    assert done["TrainingJobStatusCounters"]["NonRetryableError"] == 5
    assert len(list_trainings(harness)) == 5
    assert list_trainings(harness, SortBy="FinalObjectiveMetricValue") == [], "none has a value"


@pytest.mark.slow
def test_a_target_that_is_reached_ends_it(harness: JobHarness) -> None:
    criteria = {"TuningJobCompletionCriteria": {"TargetObjectiveMetricValue": 4}}
    harness.jobs.tuning.create(REGION, build_request(harness, ["3", "2", "1"], config=criteria))
    done = wait(harness)
    assert done["HyperParameterTuningJobStatus"] == "Completed"
    assert done["TrainingJobStatusCounters"]["Completed"] == 2


@pytest.mark.slow
def test_a_training_that_is_worse_than_the_others_is_stopped_early(harness: JobHarness) -> None:
    request = build_request(harness, ["1", "2", "3", "90"], config={"TrainingJobEarlyStoppingType": "Auto"})
    script = SCRIPT.replace('p.get("then") == "wait"', 'p["x"] == "90"')
    algorithm = request["TrainingJobDefinition"]["AlgorithmSpecification"]
    algorithm["ContainerEntrypoint"] = [part.replace(SCRIPT, script) for part in algorithm["ContainerEntrypoint"]]
    harness.jobs.tuning.create(REGION, request)
    done = wait(harness)
    assert done["HyperParameterTuningJobStatus"] == "Completed"
    counters = done["TrainingJobStatusCounters"]
    assert (counters["Completed"], counters["Stopped"]) == (3, 1)
    (stopped,) = list_trainings(harness, StatusEquals="Stopped")
    assert stopped["TunedHyperParameters"] == {"x": "90"}
    assert stopped["FinalHyperParameterTuningJobObjectiveMetric"]["Value"] == 8100.0
