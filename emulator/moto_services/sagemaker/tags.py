"""Corrections to moto's tags of SageMaker resources.

moto loses some tags, duplicates others, or does not find their resource.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from emulator.moto_services.replacements import replaced
from emulator.moto_services.sagemaker.responses import read_member
from emulator.moto_services.sagemaker.stored_kinds import find_stored

# Operations whose tags moto drops, by the member of the answer that holds the ARN.
_DROPPING = {
    "create_experiment": "ExperimentArn",
    "create_trial": "TrialArn",
    "create_trial_component": "TrialComponentArn",
    "create_notebook_instance_lifecycle_config": "NotebookInstanceLifecycleConfigArn",
}


@contextmanager
def keeping_tags() -> Iterator[None]:
    """Make moto handle tags as SageMaker does."""
    from moto.sagemaker.models import SageMakerModelBackend
    from moto.sagemaker.responses import SageMakerResponse

    find = SageMakerModelBackend._get_resource_from_arn  # noqa: SLF001 - moto has no other

    def find_with_tags(backend: Any, arn: str) -> Any:
        kind, _, name = arn.rpartition(":")[2].partition("/")
        if (stored := find_stored(backend, arn)) is not None:
            resource = stored
        elif kind == "feature-group":
            resource = backend.feature_groups.get(arn)
        elif kind == "notebook-instance-lifecycle-config":
            resource = backend.notebook_instance_lifecycle_configurations.get(name)
        else:
            resource = find(backend, arn)
        if resource is not None and getattr(resource, "tags", None) is None:
            resource.tags = []
        return resource

    creating = {name: _keep_tags(getattr(SageMakerResponse, name), member) for name, member in _DROPPING.items()}
    with (
        replaced(SageMakerModelBackend, _get_resource_from_arn=find_with_tags, add_tags=_add_tags),
        replaced(SageMakerResponse, **creating),
    ):
        yield


def _add_tags(backend: Any, arn: str, tags: list[dict[str, str]]) -> list[dict[str, str]]:
    """Add tags to a resource. If a key exists already, its value is replaced."""
    resource = backend._get_resource_from_arn(arn)  # noqa: SLF001
    resource.tags = list({tag["Key"]: tag for tag in (*resource.tags, *tags)}.values())
    return list(resource.tags)


def _keep_tags(create: Callable[[Any], Any], arn_member: str) -> Callable[[Any], Any]:
    @wraps(create)
    def create_with_tags(response: Any) -> Any:
        answer = create(response)
        tags = read_member(response, "Tags")
        if tags:
            response.sagemaker_backend.add_tags(answer.result[arn_member], tags)
        return answer

    return create_with_tags
