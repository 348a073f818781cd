"""Validation of a job's request against existing roles, images and buckets."""

import functools
import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, NamedTuple

from emulator.exceptions import ValidationException
from emulator.jobs.model.profiler_config import list_rules
from emulator.moto_services.ecr import has_repository
from emulator.moto_services.iam.job_roles import lacks_role
from emulator.moto_services.s3.objects import parse_s3_uri
from emulator.operations.context import Context, Request

_ECR_IMAGE = re.compile(
    r"(?P<account>\d{12})\.dkr[.-]ecr(-fips)?\.(?P<region>[a-z0-9-]+)\.[a-z0-9.-]+/(?P<repository>[^:@]+)([:@].*)?"
)


class _Location(NamedTuple):
    member: str
    uri: str


def check_surroundings(request: Request, context: Context) -> None:
    """Check the role, the images and the buckets of a request for a training job or a processing job.

    Raises:
        ValidationException: in AWS's words, where they are known.
    """
    _check_role(request["RoleArn"], context)
    image = _find_image(request)
    for each in (image, *(rule["RuleEvaluatorImage"] for rule in list_rules(request))):
        _check_region_of_image(each, context)
    _check_account_of_image(image, request["RoleArn"], context)
    _check_buckets(request, context)


def _check_role(role_arn: str, context: Context) -> None:
    if context.jobs.services.settings.lenient_roles:
        return
    if lacks_role(context.account_id, context.region, role_arn):
        raise ValidationException(
            f"Could not assume role {role_arn}. Please ensure that the role exists and allows principal "
            "'sagemaker.amazonaws.com' to assume the role."
        )


def _find_image(request: Request) -> str:
    name: str = (
        request["AppSpecification"]["ImageUri"]
        if "AppSpecification" in request
        else request["AlgorithmSpecification"]["TrainingImage"]
    )
    return name


def _check_region_of_image(image: str, context: Context) -> None:
    found = _ECR_IMAGE.fullmatch(image)
    if found is not None and found["region"] != context.region:
        raise ValidationException(
            f"Invalid region {found['region']} in image URI {image}. Please provide an image URI in region "
            f"{context.region}."
        )


def _check_account_of_image(image: str, role_arn: str, context: Context) -> None:
    """Refuse an image of an account that is neither the request's nor AWS's, and has no such repository."""
    found = _ECR_IMAGE.fullmatch(image)
    services = context.jobs.services
    accounts = _load_image_accounts().get(context.region)
    if found is None or accounts is None:
        return
    account, repository = found["account"], found["repository"]
    if account in (context.account_id, services.settings.account_id, *accounts):
        return
    if has_repository(account, context.region, repository) or services.runtime.has_image(image):
        return
    raise ValidationException(
        f"Access denied for repository: {repository} in registry ID: {account}. Please check if your ECR repository "
        f"and image exist and role {role_arn} has proper pull permissions for SageMaker: "
        "ecr:BatchCheckLayerAvailability, ecr:BatchGetImage, ecr:GetDownloadUrlForLayer"
    )


@functools.cache
def _load_image_accounts() -> Mapping[str, list[str]]:
    accounts: dict[str, list[str]] = json.loads(files(__package__).joinpath("image_accounts.json").read_bytes())
    return accounts


def _check_buckets(request: Request, context: Context) -> None:
    """Refuse buckets of another region. Missing ones, and URIs that are none, are found later."""
    store = context.jobs.services.object_store_for(context.region)
    regions: dict[str, str | None] = {}
    for member, uri in (*_list_inputs(request), *_list_outputs(request)):
        try:
            bucket = parse_s3_uri(uri).bucket
        except ValueError:
            continue
        if bucket not in regions:
            regions[bucket] = store.find_region(bucket)
        if regions[bucket] not in (None, context.region):
            raise ValidationException(
                f"{member} is {uri}, and the bucket {bucket} is in {regions[bucket]}: bucket must be in the same "
                f"region as the job, which is {context.region}."
            )


def _list_inputs(request: Request) -> Iterator[_Location]:
    for channel in request.get("InputDataConfig", ()):
        if source := channel["DataSource"].get("S3DataSource"):
            yield _Location(f"S3Uri of the channel {channel['ChannelName']}", source["S3Uri"])
    for each in request.get("ProcessingInputs", ()):
        if source := each.get("S3Input"):
            yield _Location(f"S3Uri of the input {each['InputName']}", source["S3Uri"])


def _list_outputs(request: Request) -> Iterator[_Location]:
    for member, key in (
        ("OutputDataConfig", "S3OutputPath"),
        ("CheckpointConfig", "S3Uri"),
        ("DebugHookConfig", "S3OutputPath"),
        ("TensorBoardOutputConfig", "S3OutputPath"),
        ("ProfilerConfig", "S3OutputPath"),
    ):
        configuration: Mapping[str, Any] = request.get(member) or {}
        if key in configuration:
            yield _Location(f"{member}.{key}", configuration[key])
    for each in request.get("ProcessingOutputConfig", {}).get("Outputs", ()):
        if output := each.get("S3Output"):
            yield _Location(f"S3Uri of the output {each['OutputName']}", output["S3Uri"])
