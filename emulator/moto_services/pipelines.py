"""SageMaker pipelines in moto's backend, which only stores them."""

from __future__ import annotations


def find_pipeline_definition(account_id: str, region: str, name: str) -> str | None:
    """Find the definition of the pipeline ``name``, or None."""
    from moto.sagemaker.models import sagemaker_backends

    pipeline = sagemaker_backends[account_id][region].pipelines.get(name)
    return None if pipeline is None else str(pipeline.pipeline_definition)
