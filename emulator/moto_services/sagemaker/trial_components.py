"""Trial components of jobs, written directly into moto's backend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from emulator.exceptions import ResourceNotFound
from emulator.moto_services.cloudwatch.metrics import Datum
from emulator.moto_services.locks import service_lock
from emulator.moto_services.unit_of_work import keeping, reading


@dataclass(frozen=True, slots=True)
class JobComponent:
    """What a trial component shows of its job.

    Attributes:
        status: InProgress, Completed, Failed, Stopping or Stopped.
        message: why the job failed; empty otherwise.
        start_ms, end_ms: epoch milliseconds.
        parameters, input_artifacts, output_artifacts: as in CreateTrialComponent.
        metrics: every value, oldest first.
    """

    status: str
    message: str = ""
    start_ms: int | None = None
    end_ms: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    input_artifacts: Mapping[str, Any] = field(default_factory=dict)
    output_artifacts: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[Datum] = ()


class TrialComponents:
    """The trial components of the jobs of one account and region. Thread safe."""

    def __init__(self, account_id: str, region: str) -> None:
        self._account_id = account_id
        self._region = region

    def check(self, experiment: str | None, trial: str | None) -> None:
        """Check that an experiment and a trial exist.

        Raises:
            ResourceNotFound: one of them does not.
        """
        with reading(), service_lock("sagemaker"):
            backend = self._find_backend()
            if experiment is not None and _find_name(backend.experiments, experiment) is None:
                raise ResourceNotFound(f"Experiment '{experiment}' does not exist: create it, or leave it out.")
            if trial is not None and _find_name(backend.trials, trial) is None:
                raise ResourceNotFound(f"Trial '{trial}' does not exist: create it, or leave it out.")

    def add(self, name: str, source: Mapping[str, str], display_name: str | None, trial: str | None) -> None:
        """Create a job's component and associate it with a trial, unless the component exists."""
        with keeping(), service_lock("sagemaker"):
            backend = self._find_backend()
            if name in backend.trial_components:
                return
            trial = None if trial is None else _find_name(backend.trials, trial)
            backend.create_trial_component(
                trial_component_name=name,
                trial_name=trial,
                status={"PrimaryStatus": "InProgress"},
                start_time=None,
                end_time=None,
                display_name=display_name,
                parameters=None,
                input_artifacts=None,
                output_artifacts=None,
                metadata_properties=None,
            )
            component = backend.trial_components[name]
            component.sources = [dict(source)]
            component.source = dict(source)
            if trial in backend.trials:
                backend.trials[trial].trial_components.append(name)

    def list_unended(self) -> list[tuple[str, str]]:
        """List name and source ARN of the components whose jobs had not ended when they were last changed."""
        with reading(), service_lock("sagemaker"):
            return [
                (name, component.sources[0]["SourceArn"])
                for name, component in self._find_backend().trial_components.items()
                if component.sources and (component.status or {}).get("PrimaryStatus") in ("InProgress", "Stopping")
            ]

    def change(self, name: str, job: JobComponent) -> None:
        """Bring a component up to date with its job. What clients added to it is kept."""
        with keeping(), service_lock("sagemaker"):
            component = self._find_backend().trial_components.get(name)
            if component is None:
                return  # deleted meanwhile
            component.status = {"PrimaryStatus": job.status} | ({"Message": job.message} if job.message else {})
            component.start_time, component.end_time = _to_time(job.start_ms), _to_time(job.end_ms)
            component.last_modified_time = datetime.now(UTC).replace(tzinfo=None)
            component.parameters = {**job.parameters, **component.parameters}
            component.input_artifacts = {**job.input_artifacts, **component.input_artifacts}
            component.output_artifacts = {**job.output_artifacts, **component.output_artifacts}
            for metric in {datum.name for datum in job.metrics}:
                data = [datum for datum in job.metrics if datum.name == metric]
                component.metrics[metric] = {
                    "MetricName": metric,
                    "Timestamp": data[-1].timestamp_ms / 1000,
                    "Values": {step: {"Value": datum.value} for step, datum in enumerate(data)},
                }

    def _find_backend(self) -> Any:
        from moto.sagemaker.models import sagemaker_backends

        return sagemaker_backends[self._account_id][self._region]


def _find_name(records: Mapping[str, Any], name: str) -> str | None:
    """Return the name as the record has it, which may differ in upper and lower case."""
    return next((each for each in records if each.lower() == name.lower()), None)


def _to_time(epoch_ms: int | None) -> datetime | None:
    return None if epoch_ms is None else datetime.fromtimestamp(epoch_ms / 1000, UTC).replace(tzinfo=None)
