"""Tests of Search over four training jobs: every property kind and operator."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from emulator.exceptions import ValidationException
from emulator.jobs.model.rule_evaluation import new_rule_evaluation
from emulator.jobs.model.training_job import FinalMetric, new_training_job
from emulator.jobs.store.store import JobStore

REGION = "us-east-1"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobStore]:
    opened = JobStore(tmp_path_factory.mktemp("search") / "jobs.sqlite")
    for at, name in enumerate(("a", "b", "c", "d")):
        add(opened, name, at)
    add(opened, "elsewhere", 9, region="eu-west-1")
    yield opened
    opened.close()


def add(store: JobStore, name: str, at: int, region: str = REGION) -> None:
    """Job ``at``: made at second ``at`` of 1970, the even ones completed, d with nothing that is not required."""
    request: dict[str, Any] = {"TrainingJobName": name, "OutputDataConfig": {"S3OutputPath": "s3://bkt/out"}}
    tags = []
    if name != "d":
        request |= {
            "HyperParameters": {"epochs": str(9 + at), "learning.rate": "0.10", "kind": f'"k{at}"', "sdk": f"2.{at}.0"},
            "EnableManagedSpotTraining": at == 1,
            "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": at + 1},
            "AlgorithmSpecification": {"ContainerEntrypoint": ["run", name]},
            "InputDataConfig": [
                {
                    "ChannelName": channel,
                    "DataSource": {"S3DataSource": {"S3Uri": f"s3://bkt/{uri}", "InstanceGroupNames": ["g", uri]}},
                }
                for channel, uri in (("train", f"x{at}"), ("test", f"y{at}"))
            ],
        }
        tags = [{"Key": "team", "Value": f"t{at}"}, {"Key": "my.key", "Value": "1"}]
    job = new_training_job("123456789012", region, f"{region}{name}", request, at * 1000)
    rule = new_rule_evaluation("123456789012", region, name, 0, {"RuleConfigurationName": f"R{at}"}, "0123abcd", 0)
    with store.transaction() as transaction:
        transaction.create_training_job(job, [rule] if at == 2 else [], tags)
        if at % 2 == 0:
            for stage in ("Downloading", "Training", "Uploading", "Completed"):
                job = job.transition(stage, job.last_modified_ms + 1000)
            metrics = (FinalMetric("loss", 0.5 + at, 7_000), FinalMetric("f1", 1.0, 7_000))
            transaction.save_job(replace(job, final_metrics=metrics))


def find(store: JobStore, *filters: tuple[str, ...], **members: Any) -> str:
    """The names of the jobs found, as one text, in the order of their names."""
    given = [dict(zip(("Name", "Operator", "Value"), each, strict=False)) for each in filters]
    expression = ({"Filters": given} if given else {}) | members
    request = {"SearchExpression": expression, "SortBy": "TrainingJobName", "SortOrder": "Ascending"}
    jobs, token, total = store.pages.search_training_jobs(REGION, request)
    assert token is None
    assert total == len(jobs)
    return "".join(job.name for job in jobs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "found"),
    [
        (("TrainingJobName", "Equals", "b"), "b"),
        (("TrainingJobName", "NotEquals", "b"), "acd"),
        (("TrainingJobName", "In", "a, d,x"), "ad"),
        (("TrainingJobArn", "Contains", "training-job/c"), "c"),
        (("TrainingJobStatus", "Equals", "Completed"), "ac"),
        (("SecondaryStatus", "Equals", "Starting"), "bd"),
        (("FailureReason", "NotExists"), "abcd"),
        (("CreationTime", "GreaterThan", "1970-01-01T00:00:01"), "cd"),
        (("CreationTime", "LessThanOrEqualTo", "1970-01-01T01:00:01+01:00"), "ab"),
        (("TrainingStartTime", "Exists"), "ac"),
        (("TrainingTimeInSeconds", "Equals", "3"), "ac"),
        (("BillableTimeInSeconds", "GreaterThan", "3"), ""),
        (("ResourceConfig.InstanceType", "Equals", "ml.m5.large"), "abc"),
        (("ResourceConfig.InstanceCount", "GreaterThanOrEqualTo", "2"), "bc"),
        (("ResourceConfig", "NotExists"), "d"),
        (("OutputDataConfig.S3OutputPath", "Contains", "bkt"), "abcd"),
        (("EnableManagedSpotTraining", "Equals", "true"), "b"),
        (("EnableManagedSpotTraining", "Equals", "False"), "acd"),
        (("EnableNetworkIsolation", "NotEquals", "true"), "abcd"),
        (("HyperParameters.epochs", "GreaterThan", "9"), "bc"),
        (("HyperParameters.epochs", "LessThan", "9.5"), "a"),
        (("HyperParameters.learning.rate", "Equals", "0.1"), "abc"),
        (("HyperParameters.kind", "Equals", '"k1"'), "b"),
        (("HyperParameters.sdk", "Equals", "2.1.0"), "b"),
        (("HyperParameters.sdk", "Equals", "2.1"), ""),
        (("HyperParameters.sdk", "GreaterThan", "2"), ""),
        (("HyperParameters.kind", "NotEquals", "1"), "abcd"),
        (("HyperParameters.kind", "Contains", "k"), "abc"),
        (("Tags.team", "Equals", "t0"), "a"),
        (("Tags.team", "NotExists"), "d"),
        (("Tags.my.key", "Exists"), "abc"),
        (("Metrics.loss", "GreaterThan", "1"), "c"),
        (("Metrics.f1", "Exists"), "ac"),
        (("FinalMetricDataList.MetricName", "Equals", "loss"), "ac"),
        (("SecondaryStatusTransitions.Status", "Equals", "Uploading"), "ac"),
        (("DebugRuleEvaluationStatuses.RuleConfigurationName", "Equals", "R2"), "c"),
        (("DebugRuleEvaluationStatuses.RuleEvaluationStatus", "NotExists"), "abd"),
        (("InputDataConfig.ChannelName", "Equals", "test"), "abc"),
        (("InputDataConfig.DataSource.S3DataSource.S3Uri", "Contains", "y1"), "b"),
        (("InputDataConfig.DataSource.S3DataSource.InstanceGroupNames", "Equals", "y2"), "c"),
        (("InputDataConfig", "NotExists"), "d"),
        (("AlgorithmSpecification.ContainerEntrypoint", "Equals", "c"), "c"),
    ],
)
def test_filters(store: JobStore, given: tuple[str, ...], found: str) -> None:
    assert find(store, given) == found


def test_a_filter_without_an_operator_means_equals(store: JobStore) -> None:
    assert find(store, Filters=[{"Name": "TrainingJobName", "Value": "c"}]) == "c"
    assert find(store) == "abcd"


def test_nested_filters_are_about_one_entry(store: JobStore) -> None:
    uri = "InputDataConfig.DataSource.S3DataSource.S3Uri"
    for channel, found in (("train", "b"), ("test", "")):
        filters = [
            {"Name": "InputDataConfig.ChannelName", "Value": channel},
            {"Name": uri, "Operator": "Contains", "Value": "x1"},
        ]
        assert find(store, NestedFilters=[{"NestedPropertyName": "InputDataConfig", "Filters": filters}]) == found
    metrics = [
        {"Name": "FinalMetricDataList.MetricName", "Value": "f1"},
        {"Name": "FinalMetricDataList.Value", "Operator": "GreaterThan", "Value": "2"},
    ]
    assert find(store, NestedFilters=[{"NestedPropertyName": "FinalMetricDataList", "Filters": metrics}]) == ""


def test_expressions_are_joined(store: JobStore) -> None:
    a, b, c = ({"Name": "TrainingJobName", "Value": name} for name in "abc")
    assert find(store, Filters=[a, b]) == ""
    assert find(store, Filters=[a, b], Operator="Or") == "ab"
    both = {"Filters": [a, b, c], "Operator": "Or"}
    assert (
        find(store, SubExpressions=[both, {"Filters": [{"Name": "TrainingJobStatus", "Value": "Completed"}]}]) == "ac"
    )


def test_sorted_pages(store: JobStore) -> None:
    def read(**members: Any) -> str:
        names, token = "", None
        while True:
            request = {"MaxResults": 1, **members} | ({"NextToken": token} if token else {})
            jobs, token, total = store.pages.search_training_jobs(REGION, request)
            assert total == 4
            names += "".join(job.name for job in jobs)
            if token is None:
                return names

    assert read() == "cadb", "the last modified first"
    assert read(SortOrder="Ascending", SortBy="CreationTime") == "abcd"
    assert read(SortOrder="Descending", SortBy="Metrics.loss") == "cadb"
    assert read(SortOrder="Ascending", SortBy="Tags.team") == "dabc"


def test_jobs_without_a_tag_of_the_visibility_conditions_are_visible(store: JobStore) -> None:
    def see(**tags: str) -> list[str]:
        conditions = [{"Key": f"Tags.{key}", "Value": value} for key, value in tags.items()]
        jobs, _, _ = store.pages.search_training_jobs(REGION, {"VisibilityConditions": conditions})
        return sorted(job.name for job in jobs)

    assert see(team="t2") == ["c", "d"]
    assert see(team="t2", owner="somebody") == ["c", "d"]
    with pytest.raises(ValidationException, match=r"write it as Tags\.<key>"):
        store.pages.search_training_jobs(REGION, {"VisibilityConditions": [{"Key": "team", "Value": "t2"}]})


def test_a_search_contains_one_contains(store: JobStore) -> None:
    contains = {"Name": "TrainingJobName", "Operator": "Contains", "Value": "a"}
    nested = {"NestedPropertyName": "InputDataConfig", "Filters": [contains | {"Name": "InputDataConfig.ChannelName"}]}
    for members in (
        {"Filters": [contains, contains]},
        {"Filters": [contains], "NestedFilters": [nested]},
        {"SubExpressions": [{"Filters": [contains]}, {"SubExpressions": [{"Filters": [contains]}]}]},
    ):
        with pytest.raises(ValidationException, match="'CONTAINS' operator usage limit of 1 exceeded"):
            find(store, **members)


def test_an_expression_is_as_large_as_sqlite_can_read(store: JobStore) -> None:
    def nest(levels: int, width: int = 1, filters: int = 1) -> dict[str, Any]:
        own = [{"Name": "TrainingJobName", "Operator": "NotEquals", "Value": "x"}] * filters
        operator = "And" if levels % 2 else "Or"
        inner = [nest(levels - 1, 1, filters)] * width if levels > 1 else []
        return {"Operator": operator, "Filters": own, "SubExpressions": inner}

    for allowed in (nest(20), nest(2, 20, 20)):
        assert len(find(store, **allowed)) == 4
    for refused in (nest(21), nest(2, 30, 20)):
        with pytest.raises(ValidationException, match="at most 20 levels of SubExpressions and 500 filters"):
            find(store, **refused)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("Colour", "Equals", "x"), "Unknown property name: Colour"),
        (("ResourceConfig.Colour", "Equals", "x"), "Unknown property name: ResourceConfig.Colour"),
        (("TrainingJobName.x", "Equals", "x"), "Unknown property name: TrainingJobName.x"),
        (("FinalMetricDataList.Colour", "Exists"), "Unknown property name: FinalMetricDataList.Colour"),
        (('HyperParameters."', "Equals", "x"), "Unknown property name"),
        (("TrainingJobName", "GreaterThan", "x"), "not supported for the text property TrainingJobName"),
        (("ResourceConfig.InstanceCount", "Contains", "1"), "Contains is not supported for the property Resource"),
        (("ResourceConfig.InstanceCount", "Equals", "one"), "The Value 'one' of the filter on ResourceConfig.Instance"),
        (("CreationTime", "GreaterThan", "yesterday"), "The Value 'yesterday'"),
        (("EnableNetworkIsolation", "Equals", "maybe"), "The Value 'maybe'"),
        (("ResourceConfig", "Equals", "x"), "The Value 'x'"),
        (("TrainingJobName", "Exists", "x"), "leave Value out"),
        (("TrainingJobName", "Equals"), "it needs a Value"),
    ],
)
def test_what_is_refused(store: JobStore, given: tuple[str, ...], text: str) -> None:
    with pytest.raises(ValidationException, match=text):
        find(store, given)


def test_lists_are_not_sorted_by_and_nested_names_have_to_fit(store: JobStore) -> None:
    with pytest.raises(ValidationException, match="cannot be sorted by InputDataConfig"):
        store.pages.search_training_jobs(REGION, {"SortBy": "InputDataConfig.ChannelName"})
    nested = {"NestedPropertyName": "InputDataConfig", "Filters": [{"Name": "TrainingJobName", "Value": "a"}]}
    with pytest.raises(
        ValidationException, match="TrainingJobName is not a property of the entries of InputDataConfig"
    ):
        find(store, NestedFilters=[nested])


def test_suggestions(store: JobStore) -> None:
    names = ["HyperParameters.epochs", "HyperParameters.kind", "HyperParameters.learning.rate", "HyperParameters.sdk"]
    assert store.pages.suggest_property_names(REGION, "Hyper") == names
    assert store.pages.suggest_property_names(REGION, "") == [
        *names,
        "Metrics.f1",
        "Metrics.loss",
        "Tags.my.key",
        "Tags.team",
    ]
    assert store.pages.suggest_property_names(REGION, "Nothing") == []
