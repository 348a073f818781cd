"""Tests of Search: by name, by tags, by several filters."""

from typing import Any

from botocore.exceptions import ClientError

from tests.contract.like_moto_server.sagemaker_resources import create
from tests.contract.like_moto_server.servers import MOTO_SERVER, Departure, Server, read_error

FILTER = "Amazon SageMaker API Reference: Filter"


def search(server: Server, resource: str, *filters: tuple[str, ...]) -> list[dict[str, Any]]:
    wanted = [dict(zip(("Name", "Operator", "Value"), each, strict=False)) for each in filters]
    found = server.client("sagemaker").search(Resource=resource, SearchExpression={"Filters": wanted})["Results"]
    return [each[resource.removeprefix("Experiment") or resource] for each in found]


def test_experiments_and_their_parts_are_found_by_name(server: Server, name: str) -> None:
    for kind in ("experiment", "trial", "trial component"):
        create(server, kind, name)
    (experiment,) = search(server, "Experiment", ("ExperimentName", "Equals", name))
    assert experiment["ExperimentArn"] == f"arn:aws:sagemaker:us-east-1:123456789012:experiment/{name}"
    (trial,) = search(server, "ExperimentTrial", ("ExperimentName", "Equals", name))
    assert trial["TrialName"] == name
    (component,) = search(server, "ExperimentTrialComponent", ("TrialComponentName", "Equals", name))
    assert component["TrialComponentName"] == name


def test_training_jobs_are_found_by_name_and_tags(server: Server, bucket: str) -> None:
    for suffix in ("one", "two"):
        create(server, "training job", f"{bucket}-{suffix}", Tags=[{"Key": bucket, "Value": suffix}])

    def find(*filters: tuple[str, ...]) -> list[str] | str:
        try:
            jobs = search(server, "TrainingJob", *filters)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return sorted(job["TrainingJobName"].removeprefix(f"{bucket}-") for job in jobs)

    name, tag = "TrainingJobName", f"Tags.{bucket}"
    assert find((name, "Equals", f"{bucket}-one")) == ["one"]
    assert find((name, "Contains", bucket)) == ["one", "two"]
    assert find((tag, "Equals", "two")) == ["two"]
    server.expect(find((tag, "Exists")), ["one", "two"], Departure(MOTO_SERVER, "500", FILTER))
    both = find((tag, "Equals", "two"), (name, "Contains", f"{bucket}-one"))
    server.expect(both, [], Departure(MOTO_SERVER, ["two"], FILTER))


def test_an_unknown_property(server: Server) -> None:
    search_expression = {"Filters": [{"Name": "Nonsense", "Operator": "Equals", "Value": "x"}]}
    found = read_error(server.client("sagemaker").search, Resource="TrainingJob", SearchExpression=search_expression)
    assert found == "ValidationException"
