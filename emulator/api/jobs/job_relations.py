"""Relations of jobs: the tuning job and the pipeline execution that made a job."""

from emulator.jobs.model.training_job import TrainingJob
from emulator.services import Services


def find_tuning_job_name(account: Services, job: TrainingJob) -> str | None:
    """Find the name of the tuning job whose trial a training job is; None if it is none, or it was deleted."""
    from emulator.jobs.model.tuning_job import TUNING_JOB_ARN, TuningJob

    arn = job.request.get(TUNING_JOB_ARN)
    found = account.store.find_by_arn(TuningJob, arn) if arn else None
    return None if found is None else found.name


def find_execution(account: Services, arn: str) -> dict[str, str] | None:
    """Find the pipeline execution of which a job is a step; None if it is of none."""
    found = account.store.newest.find_pipeline_execution_of(arn)
    if found is None:
        return None
    return {"region": found.region, "name": found.name, "pipeline": found.request["PipelineName"]}
