"""Kinds of pipeline steps: how each starts, proceeds, stops and is described.

A method gets a step of the definition and returns the members of its state that change, such as ``status``.
"""

import json
import logging
import re
import secrets
import string
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from emulator.jobs.model.pipeline_definition import is_true, plan_steps
from emulator.jobs.model.pipeline_execution import EXECUTION_STATUSES, PipelineExecution

logger = logging.getLogger(__name__)

_TOKEN_CHARACTERS = string.ascii_letters + string.digits
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_NAME = 63
_IN_EXPERIMENTS = ("TrainingJob", "ProcessingJob")


class Run(Protocol):
    """What a kind of steps needs of the run of its execution.

    Attributes:
        execution: The execution as last stored by this run.
        shutting_down: Whether it stops because the emulator ends.
    """

    execution: PipelineExecution
    shutting_down: bool

    @property
    def stopping(self) -> bool:
        """Whether the execution is to stop."""

    def connect(self, service: str) -> Any:
        """Return a boto3 client of the emulator with the pipeline's role."""

    def resolve(self, value: Any) -> Any:
        """Copy arguments of a step with their references replaced by values."""

    def reload(self) -> None:
        """Read the execution again: a client's request may have changed it."""


class StepKind:
    """A kind of steps. The methods here are those of a kind that ends as it starts."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def start(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Begin a step; without a ``status``, it is Executing."""
        raise NotImplementedError

    def proceed(self, step: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - for kinds that take time
        """Look at a step that is Executing."""
        return {}

    def stop(self, step: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - for kinds that can be stopped
        """Stop a step that is Executing, or leave it to end by itself."""
        return {}

    def describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return the step's properties, which other steps refer to."""
        return dict(self._find_state(step)["metadata"])

    def _find_state(self, step: Mapping[str, Any]) -> Mapping[str, Any]:
        """Find what the execution stores of a step; nothing before it started."""
        return self._run.execution.steps.get(step["Name"], {})

    def _name(self, step: Mapping[str, Any], longest: int = _LONGEST_NAME) -> str:
        """Name what a step makes: the same after a restart, another after a retry."""
        execution = self._run.execution
        attempt = execution.count_attempts(step["Name"])
        again = f"r{attempt}-" if attempt > 1 else ""
        index = list(plan_steps(execution.definition)).index(step["Name"])
        name = f"{execution.name}-{index}-{again}{_NOT_IN_A_NAME.sub('-', step['Name'])}"
        return name[:longest].rstrip("-")


class JobSteps(StepKind):
    """Steps that are jobs of one kind."""

    def __init__(self, run: Run, job: str, longest_name: int = _LONGEST_NAME) -> None:
        """Prepare the kind.

        Args:
            run: The run of the execution.
            job: The kind of job, as members of its operations are called, such as TrainingJob.
            longest_name: The longest name of such a job, in characters.
        """
        super().__init__(run)
        self._job = job
        self._operation = re.sub(r"(?<!^)(?=[A-Z])", "_", job).lower()
        self._longest_name = longest_name

    @property
    def _client(self) -> Any:
        return self._run.connect("sagemaker")

    def _call(self, verb: str, name: str, **members: Any) -> dict[str, Any]:
        call = getattr(self._client, f"{verb}_{self._operation}")
        answer: dict[str, Any] = call(**members, **{f"{self._job}Name": name})
        return answer

    def _describe_job(self, step: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("describe", self._find_state(step).get("job") or self._name(step, self._longest_name))

    def start(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Create the job; the one that was created before a restart of the emulator is it."""
        name = self._name(step, self._longest_name)
        role = self._run.execution.request.get("RoleArn")
        arguments = ({"RoleArn": role} if role else {}) | self._run.resolve(step["Arguments"])
        if self._job in _IN_EXPERIMENTS:
            config = _provide_experiment(self._run, self._client)
            if config := {**config, **arguments.pop("ExperimentConfig", {})}:
                arguments["ExperimentConfig"] = config
        try:
            made = self._call("create", name, **arguments)
        except self._client.exceptions.ResourceInUse:
            made = self._call("describe", name)
        return {"job": name, "arn": made[f"{self._job}Arn"]}

    def proceed(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Ask whether the job has ended."""
        description = self._describe_job(step)
        status = description[f"{self._job}Status"]
        if status not in ("Completed", "Failed", "Stopped"):
            return {}
        reason = {"failure_reason": description["FailureReason"]} if "FailureReason" in description else {}
        return {"status": EXECUTION_STATUSES[status], **reason}

    def stop(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Stop the job; the step ends with it."""
        try:
            self._call("stop", self._name(step, self._longest_name))
        except ClientError as error:
            logger.debug("%s: %s", self._run.execution.arn, error)  # it has ended meanwhile
        return {}

    def describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Describe the job."""
        return self._describe_job(step)


def _provide_experiment(run: Run, sagemaker: Any) -> Mapping[str, str]:
    """Create the experiment and the trial of an execution, unless they exist.

    Returns:
        The ExperimentConfig of the execution's jobs; empty if the definition has no PipelineExperimentConfig.

    Raises:
        ClientError: One of them cannot be created.
    """
    config = run.execution.definition.get("PipelineExperimentConfig")
    if not config:
        return {}
    names: dict[str, str] = run.resolve(config)
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


class TuningSteps(JobSteps):
    """Steps that are tuning jobs."""

    def __init__(self, run: Run) -> None:
        super().__init__(run, "HyperParameterTuningJob", 32)

    def describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Describe the tuning job, with its training jobs that have a value of the objective, the best first."""
        job = self._describe_job(step)
        pages = self._client.get_paginator("list_training_jobs_for_hyper_parameter_tuning_job").paginate(
            HyperParameterTuningJobName=job["HyperParameterTuningJobName"]
        )
        member = "FinalHyperParameterTuningJobObjectiveMetric"
        ranked = [each for page in pages for each in page["TrainingJobSummaries"] if member in each]
        definition = (job.get("TrainingJobDefinitions") or [job["TrainingJobDefinition"]])[0]
        objective = job["HyperParameterTuningJobConfig"].get("HyperParameterTuningJobObjective")
        highest_first = (objective or definition["TuningObjective"])["Type"] == "Maximize"
        ranked.sort(key=lambda each: each[member]["Value"], reverse=highest_first)
        return {**job, "TrainingJobSummaries": ranked}


class ConditionSteps(StepKind):
    """Steps that open one of two branches."""

    def start(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Decide by the conditions, which must all be true."""
        outcome = all(is_true(each) for each in self._run.resolve(step["Arguments"]["Conditions"]))
        return {"status": "Succeeded", "metadata": {"Outcome": str(outcome)}}

    def describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outcome."""
        return {"Outcome": self._find_state(step)["metadata"]["Outcome"] == "True"}


class FailSteps(StepKind):
    """Steps that fail the execution."""

    def start(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Fail with the step's message."""
        message = str(self._run.resolve(step.get("Arguments", {})).get("ErrorMessage", ""))
        reason = {"failure_reason": message} if message else {}
        return {"status": "Failed", "metadata": {"ErrorMessage": message}, **reason}


class FunctionSteps(StepKind):
    """Steps that call a Lambda function. A call that a restart of the emulator interrupted is made again."""

    def __init__(self, run: Run, callers: ThreadPoolExecutor) -> None:
        super().__init__(run)
        self._callers = callers
        self._calls: dict[str, Future[Any]] = {}

    def start(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Call the function in a thread of its own."""
        payload = json.dumps(self._run.resolve(step.get("Arguments") or {}))
        arn = self._run.resolve(step["FunctionArn"])
        invoke = self._run.connect("lambda").invoke
        self._calls[step["Name"]] = self._callers.submit(lambda: invoke(FunctionName=arn, Payload=payload))
        return {"metadata": {"Arn": arn}}

    def proceed(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Take the function's answer, if it is there.

        Raises:
            ValueError: The function failed.
        """
        call = self._calls.get(step["Name"])
        if call is None:
            return self.start(step)
        if not call.done():
            return {}
        answer = self._calls.pop(step["Name"]).result()
        returned = json.loads(answer["Payload"].read() or "null")
        if "FunctionError" in answer:
            raise ValueError(f"The function failed: {json.dumps(returned)}")
        names = [each["OutputName"] for each in step.get("OutputParameters") or ()]
        outputs = [{"Name": name, "Value": str(returned[name])} for name in names]
        metadata = {**self._find_state(step)["metadata"], "OutputParameters": outputs}
        return {"status": "Succeeded", "metadata": metadata, "outputs": {name: returned[name] for name in names}}

    def stop(self, step: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - each ends alike
        """End the step if the emulator ends, which then ends the function; else the function ends it."""
        return {"status": "Stopped"} if self._run.shutting_down else {}

    def describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that the function returned."""
        return {"OutputParameters": self._find_state(step)["outputs"]}


class CallbackSteps(StepKind):
    """Steps that send a token to a queue and wait for a client's answer with it."""

    def start(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Give the step its token. The message is sent when the token is stored, so that an early answer finds it."""
        token = "".join(secrets.choice(_TOKEN_CHARACTERS) for _ in range(10))
        arguments = self._run.resolve(step.get("Arguments") or {})
        queue = self._run.resolve(step["SqsQueueUrl"])
        if not all("OutputName" in each for each in step.get("OutputParameters") or ()):
            raise ValueError("each of OutputParameters must have an OutputName.")
        return {"metadata": {"CallbackToken": token, "SqsQueueUrl": queue}, "arguments": arguments}

    def proceed(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Send the step's message once, and another when the execution stops. A client's answer ends the step.

        Raises:
            ValueError: The queue does not take the message.
        """
        self._run.reload()
        state = self._find_state(step)
        status = "Stopping" if self._run.stopping else "Executing"
        if state["status"] != "Executing" or state.get("sent") == status:
            return {}
        body = {
            "pipelineExecutionArn": self._run.execution.arn,
            "stepName": step["Name"],
            "token": state["metadata"]["CallbackToken"],
            "arguments": state["arguments"],
            "status": status,
        }
        queue = state["metadata"]["SqsQueueUrl"]
        group = {"MessageGroupId": self._run.execution.name} if queue.endswith(".fifo") else {}
        try:
            self._run.connect("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(body), **group)
        except (BotoCoreError, ClientError) as error:
            raise ValueError(f"{queue}: {error}") from error
        return {"sent": status}

    def stop(self, step: Mapping[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - each ends alike
        """End the step if the emulator ends; else its client, who got a message, ends it."""
        return {"status": "Stopped"} if self._run.shutting_down else {}

    def describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of the client's answer."""
        return {"OutputParameters": self._find_state(step)["outputs"]}


class ModelSteps(StepKind):
    """Steps that create a model."""

    def start(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Create the model."""
        name = self._name(step)
        arguments = self._run.resolve(step["Arguments"])
        made = self._run.connect("sagemaker").create_model(**arguments, ModelName=name)
        return {"status": "Succeeded", "arn": made["ModelArn"], "job": name}

    def describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Describe the model."""
        name = self._find_state(step).get("job") or self._name(step)
        return dict(self._run.connect("sagemaker").describe_model(ModelName=name))


class RegistrationSteps(StepKind):
    """Steps that register a model package, and create its group if there is none."""

    def start(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Register the model package."""
        client, arguments = self._run.connect("sagemaker"), self._run.resolve(step["Arguments"])
        if group := arguments.get("ModelPackageGroupName"):
            pages = client.get_paginator("list_model_package_groups").paginate(NameContains=group)
            groups = [each["ModelPackageGroupName"] for page in pages for each in page["ModelPackageGroupSummaryList"]]
            if group not in groups:
                _create(lambda: client.create_model_package_group(ModelPackageGroupName=group))
        return {"status": "Succeeded", "arn": client.create_model_package(**arguments)["ModelPackageArn"]}

    def describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Describe the model package."""
        arn = self._find_state(step)["arn"]
        return dict(self._run.connect("sagemaker").describe_model_package(ModelPackageName=arn))


def build_step_kinds(run: Run, callers: ThreadPoolExecutor) -> dict[str, StepKind]:
    """Build the kinds by the Type of a step.

    Args:
        run: The run of the execution.
        callers: The threads that wait for the answers of functions.
    """
    return {
        "Training": JobSteps(run, "TrainingJob"),
        "Processing": JobSteps(run, "ProcessingJob"),
        "Tuning": TuningSteps(run),
        "Condition": ConditionSteps(run),
        "Fail": FailSteps(run),
        "Lambda": FunctionSteps(run, callers),
        "Callback": CallbackSteps(run),
        "Model": ModelSteps(run),
        "RegisterModel": RegistrationSteps(run),
    }
