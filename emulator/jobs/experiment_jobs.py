"""Trial components of the jobs that were created with an ExperimentConfig."""

from collections.abc import Mapping
from typing import Any

from emulator.jobs.model.processing_job import ProcessingJob
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.runs.containers.logs import TRAINING_GROUP
from emulator.moto_services.sagemaker.trial_components import JobComponent, TrialComponents
from emulator.number_text import read_number
from emulator.services import Services

# The end of a component's name, and the type of its source.
_KINDS: Mapping[type[Any], tuple[str, str]] = {
    TrainingJob: ("aws-training-job", "SageMakerTrainingJob"),
    ProcessingJob: ("aws-processing-job", "SageMakerProcessingJob"),
}


class ExperimentJobs:
    """Keeps the trial components of one account's jobs.

    A component is created with its job, and brought up to date when a client asks for components.
    """

    def __init__(self, services: Services) -> None:
        """Create it with the account's services."""
        self._services = services

    def check(self, region: str, request: Mapping[str, Any]) -> None:
        """Check the ExperimentConfig of a request, if it has one.

        Raises:
            ResourceNotFound: its experiment or its trial does not exist.
        """
        if config := request.get("ExperimentConfig"):
            self._components(region).check(config.get("ExperimentName"), config.get("TrialName"))

    def add(self, job: TrainingJob | ProcessingJob) -> None:
        """Create the component of a job with an ExperimentConfig, unless it exists."""
        config = job.request.get("ExperimentConfig")
        if not config:
            return
        end, source_type = _KINDS[type(job)]
        source = {"SourceArn": job.arn, "SourceType": source_type}
        display_name = config.get("TrialComponentDisplayName")
        self._components(job.region).add(f"{job.name}-{end}", source, display_name, config.get("TrialName"))

    def recover(self) -> None:
        """Create the components that the last process did not get to."""
        store = self._services.store
        running: list[TrainingJob | ProcessingJob] = [*store.list_running_jobs(TrainingJob)]
        running += store.list_running_jobs(ProcessingJob)
        for job in running:
            self.add(job)

    def refresh(self, region: str) -> None:
        """Bring the region's components up to date with their jobs."""
        components = self._components(region)
        for name, arn in components.list_unended():
            job = self._find_source(arn)
            if job is None:
                components.change(name, JobComponent("Stopped", "The job was deleted before it was recorded."))
            else:
                components.change(name, self._describe(job))

    def _find_source(self, arn: str) -> TrainingJob | ProcessingJob | None:
        find = self._services.store.find_by_arn
        return find(TrainingJob, arn) if ":training-job/" in arn else find(ProcessingJob, arn)

    def _components(self, region: str) -> TrialComponents:
        return TrialComponents(self._services.account_id, region)

    def _describe(self, job: TrainingJob | ProcessingJob) -> JobComponent:
        if isinstance(job, ProcessingJob):
            return JobComponent(
                job.status,
                job.failure_reason or "",
                job.creation_ms,
                job.end_ms,
                _build_parameters(
                    job.request.get("Environment", {}), job.request["ProcessingResources"]["ClusterConfig"]
                ),
                {"SageMaker.ImageUri": {"Value": job.request["AppSpecification"]["ImageUri"]}}
                | {
                    each["InputName"]: {"Value": each["S3Input"]["S3Uri"]}
                    for each in job.request.get("ProcessingInputs", ())
                    if "S3Input" in each
                },
                {
                    each["OutputName"]: {"Value": each["S3Output"]["S3Uri"]}
                    for each in job.request.get("ProcessingOutputConfig", {}).get("Outputs", ())
                    if "S3Output" in each
                },
            )
        artifacts = {} if job.model_artifacts is None else {"SageMaker.ModelArtifact": {"Value": job.model_artifacts}}
        return JobComponent(
            job.status,
            job.failure_reason or "",
            job.training_start_ms,
            job.training_end_ms,
            _build_parameters(job.request.get("HyperParameters", {}), job.request.get("ResourceConfig", {})),
            {
                each["ChannelName"]: {"Value": each["DataSource"]["S3DataSource"]["S3Uri"]}
                for each in job.request.get("InputDataConfig", ())
                if "S3DataSource" in each["DataSource"]
            }
            | {"SageMaker.ImageUri": {"Value": job.request["AlgorithmSpecification"]["TrainingImage"]}},
            artifacts,
            self._services.metrics_for(job.region).read(TRAINING_GROUP, "TrainingJobName", job.name),
        )


def _build_parameters(given: Mapping[str, str], resources: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    parameters: dict[str, dict[str, Any]] = {}
    for name, value in given.items():
        number = read_number(value)
        parameters[name] = {"StringValue": value} if number is None else {"NumberValue": number}
    for name in ("InstanceCount", "VolumeSizeInGB"):
        if name in resources:
            parameters[f"SageMaker.{name}"] = {"NumberValue": float(resources[name])}
    if "InstanceType" in resources:
        parameters["SageMaker.InstanceType"] = {"StringValue": resources["InstanceType"]}
    return parameters
