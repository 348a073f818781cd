"""Executions of pipelines; their steps make jobs by the API, as any client does."""

from __future__ import annotations

import json
import logging
import re
import secrets
import string
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple

from emulator.jobs.model.descriptions import to_seconds
from emulator.jobs.model.pipeline_execution import (
    EXECUTION_STATUSES,
    PipelineExecution,
    bind_parameters,
    follow_path,
    is_true,
    plan_steps,
    resolve,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from emulator.services import Services
    from emulator.settings import Settings

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_LONGEST_SECONDS = 28 * 86_400
_TOKEN_CHARACTERS = string.ascii_letters + string.digits
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")


class StepKind(NamedTuple):
    """A kind of job that a step may be: what its operations and members are called, and how long its name may be."""

    job: str
    name_length: int

    @property
    def operation(self) -> str:
        """The end of the names of its operations, as boto3 calls them."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", self.job).lower()


_KINDS = {
    "Training": StepKind("TrainingJob", 63),
    "Processing": StepKind("ProcessingJob", 63),
    "Tuning": StepKind("HyperParameterTuningJob", 32),
}


class PipelineRun:
    """The run of one execution. Its own thread calls ``live``; other threads may ask it to stop."""

    def __init__(self, execution: PipelineExecution, collaborators: Services) -> None:
        """Prepare a run, of a new execution or of one that ran before a restart."""
        self.arn, self.name = execution.arn, execution.name
        self._execution = execution
        self._with = collaborators
        self._stop_asked = Event()
        self._shutting_down = False
        if execution.status == "Stopping":
            self._stop_asked.set()
        self._steps = execution.planned
        self._definitions = {name: step.definition for name, step in plan_steps(execution.definition).items()}
        self._connect = partial(_connect, execution, collaborators.settings)
        self._client: Any = None
        self._calls: dict[str, Future[Any]] = {}
        self._callers = ThreadPoolExecutor(thread_name_prefix=f"pipeline-{execution.name}")

    def drive(self) -> None:
        """Drive the execution from where it is to its end."""
        try:
            self._client = self._connect("sagemaker")
            self._run_steps()
            self._end()
        except Exception as error:
            logger.exception("The pipeline execution %s failed by a defect of the emulator", self.name)
            reason = f"InternalServerError: {type(error).__name__}: {error}."
            self._with.threads.store_at_last(lambda: self._change(lambda each, now_ms: each.fail(now_ms, reason)))
        finally:
            self._callers.shutdown(wait=False, cancel_futures=True)

    def _run_steps(self) -> None:
        """Keep steps going whose needs are met, until nothing runs and nothing more can."""
        while True:
            for name in self._list("Executing"):
                self._look_at(self._steps[name].definition)
            if self._stop_asked.is_set():
                for name in self._list("Executing"):
                    self._stop_step(self._steps[name].definition)
            elif ready := self._list_ready():
                for step in ready:
                    act = _ACTIONS.get(step["Type"], PipelineRun._start_job)
                    self._take(step, act, start_ms=self._with.ledger.now_ms())
                continue  # a condition opens its branch at once
            if not self._list("Executing"):
                return
            self._with.threads.wait_for_news(_POLL_SECONDS)

    def _list_ready(self) -> list[Mapping[str, Any]]:
        """List the steps that may start now; none any more once one has failed."""
        if self._list("Failed", "Stopped"):
            return []
        started, succeeded = self._execution.steps, set(self._list("Succeeded"))
        ready = [
            planned.definition
            for name, planned in self._steps.items()
            if name not in started
            and planned.needs <= succeeded
            and all(started[guard]["metadata"]["Outcome"] == str(outcome) for guard, outcome in planned.guards)
        ]
        most = self._execution.request.get("ParallelismConfiguration", {}).get("MaxParallelExecutionSteps")
        return ready if most is None else ready[: most - len(self._list("Executing"))]

    def _list(self, *statuses: str) -> list[str]:
        return [name for name, step in self._execution.steps.items() if step["status"] in statuses]

    def _take(
        self, step: Mapping[str, Any], act: Callable[[PipelineRun, Mapping[str, Any]], dict[str, Any]], **members: Any
    ) -> None:
        """Store what became of a step by ``act``, which returns members of it."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            members |= {"status": "Executing"} | act(self, step)
        except (BotoCoreError, ClientError, LookupError, TypeError, ValueError) as error:
            members |= {"status": "Failed", "failure_reason": f"ClientError: {error}"}
        if members["status"] != "Executing":
            members["end_ms"] = self._with.ledger.now_ms()
        self._set(step["Name"], type=step["Type"], **members)

    def _start_job(self, step: Mapping[str, Any]) -> dict[str, Any]:
        kind, name = _KINDS[step["Type"]], self._name_job(step)
        role = self._execution.request.get("RoleArn")
        arguments = ({"RoleArn": role} if role else {}) | self._resolve(step["Arguments"])
        try:
            made = getattr(self._client, f"create_{kind.operation}")(**arguments, **{f"{kind.job}Name": name})
        except self._client.exceptions.ResourceInUse:
            made = self._describe(step)  # made before a restart
        return {"job": name, "arn": made[f"{kind.job}Arn"]}

    def _decide(self, step: Mapping[str, Any]) -> dict[str, Any]:
        outcome = all(is_true(each) for each in self._resolve(step["Arguments"]["Conditions"]))
        return {"status": "Succeeded", "metadata": {"Outcome": str(outcome)}}

    def _give_up(self, step: Mapping[str, Any]) -> dict[str, Any]:
        message = str(self._resolve(step.get("Arguments", {})).get("ErrorMessage", ""))
        reason = {"failure_reason": message} if message else {}
        return {"status": "Failed", "metadata": {"ErrorMessage": message}, **reason}

    def _call_function(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Begin a call of a step's function in a thread of its own; what is stored tells nothing of it yet."""
        payload = json.dumps(self._resolve(step.get("Arguments") or {}))
        arn = self._resolve(step["FunctionArn"])
        invoke = self._connect("lambda").invoke
        self._calls[step["Name"]] = self._callers.submit(lambda: invoke(FunctionName=arn, Payload=payload))
        return {"metadata": {"Arn": arn}}

    def _end_call(self, step: Mapping[str, Any]) -> dict[str, Any]:
        answer = self._calls.pop(step["Name"]).result()
        returned = json.loads(answer["Payload"].read() or "null")
        if "FunctionError" in answer:
            raise ValueError(f"The function failed: {json.dumps(returned)}")
        names = [each["OutputName"] for each in step.get("OutputParameters") or ()]
        outputs = [{"Name": name, "Value": str(returned[name])} for name in names]
        metadata = {**self._execution.steps[step["Name"]]["metadata"], "OutputParameters": outputs}
        return {"status": "Succeeded", "metadata": metadata, "outputs": {name: returned[name] for name in names}}

    def _open_callback(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Give the step its token. The message follows when the token is stored, so that an early answer finds it."""
        token = "".join(secrets.choice(_TOKEN_CHARACTERS) for _ in range(10))
        arguments = self._resolve(step.get("Arguments") or {})
        queue = self._resolve(step["SqsQueueUrl"])
        if not all("OutputName" in each for each in step.get("OutputParameters") or ()):
            raise ValueError("each of OutputParameters must have an OutputName.")
        return {"metadata": {"CallbackToken": token, "SqsQueueUrl": queue}, "arguments": arguments}

    def _follow_callback(self, step: Mapping[str, Any]) -> None:
        """Send the step's message once, and another one when the execution stops. A client's answer ends the step."""
        from botocore.exceptions import BotoCoreError, ClientError

        name = step["Name"]
        self._change(lambda execution, _: execution)  # as a client's answer left it
        state = self._execution.steps[name]
        status = "Stopping" if self._stop_asked.is_set() else "Executing"
        if state["status"] != "Executing" or state.get("sent") == status:
            return
        body = {
            "pipelineExecutionArn": self.arn,
            "stepName": name,
            "token": state["metadata"]["CallbackToken"],
            "arguments": state["arguments"],
            "status": status,
        }
        queue = state["metadata"]["SqsQueueUrl"]
        group = {"MessageGroupId": self.name} if queue.endswith(".fifo") else {}
        try:
            self._connect("sqs").send_message(QueueUrl=queue, MessageBody=json.dumps(body), **group)
        except (BotoCoreError, ClientError) as error:
            now_ms = self._with.ledger.now_ms()
            self._set(name, status="Failed", end_ms=now_ms, failure_reason=f"ClientError: {queue}: {error}")
        else:
            self._set(name, sent=status)

    def _create_model(self, step: Mapping[str, Any]) -> dict[str, Any]:
        name = self._name_job(step)
        made = self._client.create_model(**self._resolve(step["Arguments"]), ModelName=name)
        return {"status": "Succeeded", "arn": made["ModelArn"], "job": name}

    def _register_model(self, step: Mapping[str, Any]) -> dict[str, Any]:
        arguments = self._resolve(step["Arguments"])
        if group := arguments.get("ModelPackageGroupName"):
            pages = self._client.get_paginator("list_model_package_groups").paginate(NameContains=group)
            groups = [each["ModelPackageGroupName"] for page in pages for each in page["ModelPackageGroupSummaryList"]]
            if group not in groups:
                self._client.create_model_package_group(ModelPackageGroupName=group)
        return {"status": "Succeeded", "arn": self._client.create_model_package(**arguments)["ModelPackageArn"]}

    def _look_at(self, step: Mapping[str, Any]) -> None:
        """Take over the end of a step's job, or of a function's call."""
        if step["Type"] == "Lambda":
            call = self._calls.get(step["Name"])
            if call is None:  # the emulator was ended meanwhile
                self._take(step, _ACTIONS["Lambda"])
            elif call.done():
                self._take(step, PipelineRun._end_call)
            return
        if step["Type"] == "Callback":
            self._follow_callback(step)
            return
        description = self._describe(step)
        status = description[f"{_KINDS[step['Type']].job}Status"]
        if status in ("Completed", "Failed", "Stopped"):
            reason = {"failure_reason": description["FailureReason"]} if "FailureReason" in description else {}
            self._set(step["Name"], status=EXECUTION_STATUSES[status], end_ms=self._with.ledger.now_ms(), **reason)

    def _stop_step(self, step: Mapping[str, Any]) -> None:
        from botocore.exceptions import ClientError

        kind = _KINDS.get(step["Type"])
        if kind is None:
            if step["Type"] == "Callback" and self._shutting_down:
                self._set(step["Name"], status="Stopped", end_ms=self._with.ledger.now_ms())
            return  # a function ends by itself, and a callback's client ends it
        try:
            getattr(self._client, f"stop_{kind.operation}")(**{f"{kind.job}Name": self._name_job(step)})
        except ClientError as error:
            logger.debug("%s: %s", self.arn, error)  # it has ended meanwhile

    def _describe(self, step: Mapping[str, Any]) -> dict[str, Any]:
        """Describe what a step made, as its properties are called."""
        state = self._execution.steps.get(step["Name"], {})
        match step["Type"]:
            case "Condition":
                return {"Outcome": state["metadata"]["Outcome"] == "True"}
            case "Fail":
                return dict(state["metadata"])
            case "Lambda" | "Callback":
                return {"OutputParameters": state["outputs"]}
            case "Model":
                return dict(self._client.describe_model(ModelName=state.get("job") or self._name_job(step)))
            case "RegisterModel":
                return dict(self._client.describe_model_package(ModelPackageName=state["arn"]))
        kind = _KINDS[step["Type"]]
        describe = getattr(self._client, f"describe_{kind.operation}")
        found: dict[str, Any] = describe(**{f"{kind.job}Name": state.get("job") or self._name_job(step)})
        return found

    def _rank_training_jobs(self, tuning_job: Mapping[str, Any]) -> list[dict[str, Any]]:
        """List the training jobs of a tuning job that have a value of the objective, the best first."""
        pages = self._client.get_paginator("list_training_jobs_for_hyper_parameter_tuning_job").paginate(
            HyperParameterTuningJobName=tuning_job["HyperParameterTuningJobName"]
        )
        member = "FinalHyperParameterTuningJobObjectiveMetric"
        ranked = [each for page in pages for each in page["TrainingJobSummaries"] if member in each]
        definition = (tuning_job.get("TrainingJobDefinitions") or [tuning_job["TrainingJobDefinition"]])[0]
        objective = tuning_job["HyperParameterTuningJobConfig"].get("HyperParameterTuningJobObjective")
        highest_first = (objective or definition["TuningObjective"])["Type"] == "Maximize"
        return sorted(ranked, key=lambda each: each[member]["Value"], reverse=highest_first)

    def _name_job(self, step: Mapping[str, Any]) -> str:
        """Name a step's job: the same after a restart, another one after a retry."""
        attempt = self._execution.count_attempts(step["Name"])
        again = f"r{attempt}-" if attempt > 1 else ""
        index = list(self._definitions).index(step["Name"])
        name = f"{self.name}-{index}-{again}{_NOT_IN_A_NAME.sub('-', step['Name'])}"
        return name[: _KINDS.get(step["Type"], _KINDS["Training"]).name_length].rstrip("-")

    def _resolve(self, value: Any) -> Any:
        return resolve(value, self._look_up, self._read_json)

    def _read_json(self, source: Mapping[str, Any]) -> Any:
        """Read what a Std:JsonGet asks for: a value of a JSON file in S3, which may be a step's property file.

        Raises:
            LookupError: nothing is there.
            ValueError: the file is no JSON.
        """
        uri = source.get("S3Uri")
        if uri is None:
            _, step, _, name = source["PropertyFile"]["Get"].split(".", 3)
            definition = self._definitions[step]
            (file,) = [each for each in definition["PropertyFiles"] if each["PropertyFileName"] == name]
            outputs = self._describe(definition)["ProcessingOutputConfig"]
            folder = follow_path(outputs, f"Outputs['{file['OutputName']}'].S3Output.S3Uri")
            uri = f"{folder}/{file['FilePath']}"
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return follow_path(json.load(self._connect("s3").get_object(Bucket=bucket, Key=key)["Body"]), source["Path"])

    def _look_up(self, path: str) -> Any:
        """Find what a reference of the definition stands for.

        Raises:
            LookupError: nothing has that path.
        """
        head, _, rest = path.partition(".")
        if head == "Parameters":
            given = self._execution.request.get("PipelineParameters", ())
            return bind_parameters(self._execution.definition, given)[rest]
        if head == "Execution":
            started = datetime.fromtimestamp(to_seconds(self._execution.creation_ms), tz=UTC).isoformat()
            return {
                "PipelineExecutionId": self.name,
                "PipelineExecutionArn": self.arn,
                "PipelineName": self._execution.request["PipelineName"],
                "PipelineArn": self._execution.pipeline_arn,
                "StartDateTime": started,
                "CurrentDateTime": started,
            }[rest]
        name, _, inner = rest.partition(".")
        step = self._definitions[name]
        found = self._describe(step)
        if step["Type"] == "Tuning" and inner.startswith("TrainingJobSummaries"):
            found["TrainingJobSummaries"] = self._rank_training_jobs(found)
        return follow_path(found, inner)

    def _end(self) -> None:
        failed = bool(self._list("Failed", "Stopped"))

        def conclude(execution: PipelineExecution, now_ms: int) -> PipelineExecution:
            if execution.status == "Stopping":
                return execution.transition("Stopped", now_ms)
            if failed:
                return execution.fail(now_ms, "Step failure: One or multiple steps failed.")
            return execution.transition("Completed", now_ms)

        self._change(conclude)

    def ask_stop(self, grace_seconds: float) -> None:  # noqa: ARG002 - that of each job counts
        """Start nothing more and stop what runs; returns at once. Any thread may call it, more than once."""
        self._stop_asked.set()

    def shut_down(self, grace_seconds: float) -> None:
        """Store that the execution is stopping and ask it to, because the emulator ends."""
        self._with.ledger.change_job(PipelineExecution, self._execution.region, self.name, PipelineExecution.begin_stop)
        self._shutting_down = True
        self.ask_stop(grace_seconds)

    def _set(self, name: str, **members: Any) -> None:
        self._change(lambda execution, now_ms: execution.set_step(name, now_ms, **members))

    def _change(self, change: Callable[[PipelineExecution, int], PipelineExecution]) -> None:
        self._execution = self._with.ledger.change_job(PipelineExecution, self._execution.region, self.name, change)


def _connect(execution: PipelineExecution, settings: Settings, service: str) -> Any:
    import boto3

    role = execution.request.get("RoleArn")
    credentials = (
        settings.issue_credentials(role, execution.name, _LONGEST_SECONDS) if role else settings.container_credentials
    )
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=settings.endpoint_url,
        verify=None if settings.ca_bundle is None else str(settings.ca_bundle),
        region_name=execution.region,
        aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=credentials.get("AWS_SESSION_TOKEN"),
    )


# The steps that are no jobs.
_ACTIONS: Mapping[str, Callable[[PipelineRun, Mapping[str, Any]], dict[str, Any]]] = {
    "Condition": PipelineRun._decide,  # noqa: SLF001 - the list of what it can do
    "Fail": PipelineRun._give_up,  # noqa: SLF001
    "Callback": PipelineRun._open_callback,  # noqa: SLF001
    "Lambda": PipelineRun._call_function,  # noqa: SLF001
    "Model": PipelineRun._create_model,  # noqa: SLF001
    "RegisterModel": PipelineRun._register_model,  # noqa: SLF001
}
