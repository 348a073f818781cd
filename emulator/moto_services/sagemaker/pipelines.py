"""SageMaker pipelines in moto's backend, which only stores them."""

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from emulator.exceptions import ValidationException
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import keeping, reading


class StoredPipeline(NamedTuple):
    """A pipeline: its definition in JSON, and its ParallelismConfiguration, if any."""

    definition: str
    parallelism: Mapping[str, int] | None


def find_pipeline(account_id: str, region: str, name: str) -> StoredPipeline | None:
    """Find the pipeline ``name``, or None."""
    from moto.sagemaker.models import sagemaker_backends

    with reading(), service_lock("sagemaker"):
        pipeline = sagemaker_backends[account_id][region].pipelines.get(name)
        if pipeline is None:
            return None
        return StoredPipeline(read_definition(pipeline), pipeline.parallelism_configuration)


def record_run(account_id: str, region: str, name: str, start_ms: int) -> None:
    """Record the start of an execution, for LastRunTime and LastExecutionTime."""
    from moto.sagemaker.models import sagemaker_backends

    start = datetime.fromtimestamp(start_ms / 1000, UTC).replace(tzinfo=None)  # as moto's own times
    with keeping(), service_lock("sagemaker"):
        pipeline = sagemaker_backends[account_id][region].pipelines.get(name)
        if pipeline is not None and (pipeline.last_execution_time is None or pipeline.last_execution_time < start):
            pipeline.last_execution_time = start


def read_definition(pipeline: Any) -> str:
    """Return the definition of one of moto's pipelines, in JSON."""
    definition = pipeline.pipeline_definition
    # Older states hold the parsed definition of a pipeline that came from S3.
    return definition if isinstance(definition, str) else json.dumps(definition)


def keeping_definitions() -> AbstractContextManager[None]:
    """Let a definition in S3 be kept as the text that it is, which moto would describe as a Python dict's repr."""
    from moto.sagemaker import models

    return replaced(models, load_pipeline_definition_from_s3=_load_definition)


def _load_definition(pipeline_definition_s3_location: Mapping[str, Any], account_id: str, partition: str) -> str:
    """Read the definition of a pipeline from S3.

    Raises:
        ValidationException: there is no such object, or it holds no JSON.
    """
    from moto.s3.models import s3_backends

    bucket, key = pipeline_definition_s3_location["Bucket"], pipeline_definition_s3_location["ObjectKey"]
    version = pipeline_definition_s3_location.get("VersionId")
    backend = s3_backends[account_id][partition]
    with service_lock("s3"):
        found = backend.get_object(bucket, key, version_id=version) if bucket in backend.buckets else None
        if found is None:
            raise ValidationException(f"PipelineDefinitionS3Location: s3://{bucket}/{key} does not exist.")
        content = found.value
    try:
        text: str = content.decode()
        json.loads(text)
    except ValueError as error:
        raise ValidationException(
            f"PipelineDefinitionS3Location: s3://{bucket}/{key} holds no JSON ({error})."
        ) from error
    return text
