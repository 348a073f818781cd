"""Experiment and trial of a pipeline execution, which the definition names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def provide_experiment(
    definition: Mapping[str, Any], resolve: Callable[[Any], Any], sagemaker: Any
) -> Mapping[str, str]:
    """Create the experiment and the trial of an execution, unless they exist.

    Args:
        definition: the pipeline's.
        resolve: replaces references by values.
        sagemaker: a client of SageMaker.

    Returns:
        the ExperimentConfig of the execution's jobs; empty if the definition has no PipelineExperimentConfig.

    Raises:
        ClientError: one of them cannot be created.
    """
    config = definition.get("PipelineExperimentConfig")
    if not config:
        return {}
    names: dict[str, str] = resolve(config)
    experiment, trial = names["ExperimentName"], names["TrialName"]
    _create(lambda: sagemaker.create_experiment(ExperimentName=experiment))
    _create(lambda: sagemaker.create_trial(TrialName=trial, ExperimentName=experiment))
    return {"ExperimentName": experiment, "TrialName": trial}


def _create(create: Callable[[], object]) -> None:
    try:
        create()
    except ClientError as error:
        if "already exists" not in error.response["Error"]["Message"]:
            raise
