"""JSON answers about processing jobs, tuning jobs and pipeline executions."""

from typing import Any, TypedDict

from emulator.api.description.answers import AnyJob, ExecutionReference


class ProcessingJobSummary(AnyJob):
    image: str
    trainingJob: str | None
    rule: str | None


class ProcessingJobList(TypedDict):
    jobs: list[ProcessingJobSummary]
    total: int


class ProcessingJob(ProcessingJobSummary):
    execution: ExecutionReference | None
    exitMessage: str | None
    hosts: list[str]
    links: dict[str, str]
    description: dict[str, Any]


class TuningJobSummary(AnyJob):
    strategy: str
    objective: str
    direction: str
    trials: int
    mostTrials: int | None
    best: float | None


class TuningJobList(TypedDict):
    jobs: list[TuningJobSummary]
    total: int


class Trial(AnyJob):
    definition: str
    parameters: dict[str, str]
    objective: str
    objectiveStatus: str
    value: float | None


class TuningJob(TuningJobSummary):
    execution: ExecutionReference | None
    bestTrial: str | None
    trialJobs: list[Trial]
    description: dict[str, Any]


class PipelineExecutionSummary(AnyJob):
    pipeline: str
    title: str
    steps: int
    stepsEnded: int


class PipelineExecutionList(TypedDict):
    jobs: list[PipelineExecutionSummary]
    total: int


class PipelineStep(TypedDict):
    name: str
    type: str
    needs: list[str]
    status: str | None
    startMs: int | None
    endMs: int | None
    failureReason: str | None
    job: str | None
    outcome: str | None


class PipelineExecution(PipelineExecutionSummary):
    stepList: list[PipelineStep]
    parameters: dict[str, Any]
    description: dict[str, Any]
