"""Running emulator: clients of AWS, waits for jobs and rules, trials."""

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from sdk_compat import sagemaker_v2, sagemaker_v3
from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.environment import DEFAULT_ACCOUNT_ID, DEFAULT_REGION
from sdk_compat.job_objects import read_job_name
from sdk_compat.remote import Remote

WAIT_SECONDS = 600.0
_POLL_SECONDS = 0.1
_LOG_LINES, _LINE_WIDTH = 15, 300
_UNFINISHED = ("InProgress", "Stopping")
# Those in which a TrainingJobStatus and a RuleEvaluationStatus end.
_JOB_ENDS = ("Completed", "Failed", "Stopped")
_RULE_ENDS = ("NoIssuesFound", "IssuesFound", "Error", "Stopped")
# In the StatusDetails of a rule that could not have found an issue, after its name: smdebug.rules.container.verdict.
_JUDGED_NOTHING = " judged nothing. "
_LOG_GROUPS = {"training job": "/aws/sagemaker/TrainingJobs", "rule": "/aws/sagemaker/ProcessingJobs"}


class EmulatorClient:
    """Clients of an emulator, and methods that wait for its jobs.

    Attributes:
        endpoint_url: the emulator's URL.
        region: the region of its clients, and of clients that read the environment.
        account_id: the AWS account of all resources.
        role_arn: an IAM role for jobs.
        boto3_session: a ``boto3.Session`` whose clients use the emulator.
        failure: what the methods that wait raise where a job is not as expected.
    """

    failure: type[BaseException] = AssertionError

    def __init__(
        self, endpoint_url: str, role_name: str, region: str = DEFAULT_REGION, ca_bundle: str | None = None
    ) -> None:
        """Store the address. Nothing is asked before a method is called.

        Args:
            endpoint_url: the emulator's URL.
            role_name: the name of ``role_arn``.
            region: see above.
            ca_bundle: the file of the certificates that its clients trust; None for that of the environment.
        """
        self.endpoint_url, self.region, self.account_id = endpoint_url, region, DEFAULT_ACCOUNT_ID
        self.role_arn = f"arn:aws:iam::{self.account_id}:role/{role_name}"
        self.boto3_session = EmulatorSession(endpoint_url, region, ca_bundle)
        self._buckets: list[str] = []

    @property
    def console_url(self) -> str:
        """The URL of the console."""
        return f"{self.endpoint_url}/console"

    def client(self, service: str, region: str | None = None) -> Any:
        """Create a boto3 client that uses the emulator."""
        return self.boto3_session.client(service, region_name=region or self.region)

    def open_sagemaker_session(self) -> Any:
        """Create a session of the SageMaker Python SDK that is installed, of version 2 or 3.

        Raises:
            ImportError: none is; the message says which to install.
        """
        module = sagemaker_v3 if sagemaker_v3.is_installed() else sagemaker_v2
        session = module.local_session(self.endpoint_url, self.region)
        self._buckets.append(session.default_bucket())
        return session

    def make_bucket(self, name: str) -> str:
        """Create an S3 bucket and return its name. ``reset`` creates it again."""
        self._create_bucket(name)
        self._buckets.append(name)
        return name

    def reset(self) -> None:
        """Stop all jobs and delete everything in all services. The buckets made here are created again, empty."""
        self._send_reset()
        for name in dict.fromkeys(self._buckets):
            self._create_bucket(name)

    def _create_bucket(self, name: str) -> None:
        # As S3 has it: a region is named, unless it is us-east-1.
        place = {"CreateBucketConfiguration": {"LocationConstraint": self.region}}
        self.client("s3").create_bucket(Bucket=name, **({} if self.region == "us-east-1" else place))

    def _send_reset(self) -> None:
        Remote(self.endpoint_url).ask("reset", "POST")

    def wait(self, job: Any, status: str | None = None, timeout: float = WAIT_SECONDS) -> dict[str, Any]:
        """Wait until a training job has ended and return the response of DescribeTrainingJob.

        Args:
            job: the job's name, an estimator, or another object that ``read_job_name`` accepts.
            status: the expected TrainingJobStatus; ``failure`` is raised if the job ends with another one.
            timeout: the number of seconds after which ``failure`` is raised.

        Raises:
            ValueError: no job ends with ``status``.
        """
        __tracebackhide__ = True
        _check_status("job", status, _JOB_ENDS)
        name = read_job_name(job)
        described = self._wait(
            name, lambda found: found["TrainingJobStatus"] not in _UNFINISHED, "did not end", timeout
        )
        if status is not None and described["TrainingJobStatus"] != status:
            raise self.failure(f"{name} is {described['TrainingJobStatus']}, not {status}.\n{self._explain(described)}")
        return described

    def wait_for_rules(self, job: Any, timeout: float = WAIT_SECONDS) -> dict[str, str]:
        """Wait until all rules of a training job have ended.

        Args:
            job: the job's name, an estimator, or another object that ``read_job_name`` accepts.
            timeout: the number of seconds after which ``failure`` is raised.

        Returns:
            The RuleEvaluationStatus of each rule, by RuleConfigurationName.
        """
        __tracebackhide__ = True
        described = self._wait(
            read_job_name(job),
            lambda found: all(rule["RuleEvaluationStatus"] not in _UNFINISHED for rule in list_rules(found)),
            "has rules that are still evaluated",
            timeout,
        )
        return {rule["RuleConfigurationName"]: rule["RuleEvaluationStatus"] for rule in list_rules(described)}

    def assert_rule(
        self, job: Any, rule: str, status: str, timeout: float = WAIT_SECONDS, *, may_judge_nothing: bool = False
    ) -> None:
        """Wait until a rule has ended and check its status.

        If the status differs, ``failure`` is raised with the rule's StatusDetails, the job's FailureReason and the last
        lines of both logs. It is also raised if a rule ends with NoIssuesFound because it judged nothing: its tensors
        were not saved, or in too few steps for the rule to fire, or it has no threshold.

        Args:
            job: the job's name, an estimator, or another object that ``read_job_name`` accepts.
            rule: the rule's RuleConfigurationName.
            status: the expected RuleEvaluationStatus.
            timeout: the number of seconds after which ``failure`` is raised.
            may_judge_nothing: whether NoIssuesFound is also accepted from a rule that judged nothing.

        Raises:
            ValueError: no rule ends with ``status``.
        """
        __tracebackhide__ = True
        _check_status("rule", status, _RULE_ENDS)
        name = read_job_name(job)

        def is_judged(found: dict[str, Any]) -> bool:
            return _get_rule(found, rule).get("RuleEvaluationStatus") not in _UNFINISHED

        described = self._wait(name, is_judged, f"has no verdict of {rule}", timeout)
        judged = _get_rule(described, rule)
        if not judged:
            known = ", ".join(each["RuleConfigurationName"] for each in list_rules(described))
            raise self.failure(f"{name} has no rule {rule!r}; its rules are: {known or 'none'}.")
        if judged["RuleEvaluationStatus"] != status:
            verdict = f"{rule} of {name} is {judged['RuleEvaluationStatus']}, not {status}."
            raise self.failure(f"{verdict}\n{self._explain(described, judged)}")
        if status == "NoIssuesFound" and not may_judge_nothing and _JUDGED_NOTHING in judged.get("StatusDetails", ""):
            raise self.failure(
                f"{rule} of {name} is NoIssuesFound, but it judged nothing. Its details say what it lacked; to accept "
                f"this verdict, give may_judge_nothing=True.\n{self._explain(described, judged)}"
            )

    def open_trial(self, job: Any) -> Any:
        """Open the tensors that a training job saved, as an smdebug trial."""
        __tracebackhide__ = True
        described = self._describe(self.client("sagemaker"), read_job_name(job))
        if "DebugHookConfig" not in described:
            raise self.failure(f"{read_job_name(job)} saves no tensors: it was created without a DebugHookConfig.")
        # This imports the smdebug library that is installed; this package does not depend on it.
        trials = import_module("smdebug.trials")
        base = described["DebugHookConfig"]["S3OutputPath"].rstrip("/")
        return trials.create_trial(f"{base}/{described['TrainingJobName']}/debug-output")

    def _wait(
        self, name: str, is_over: Callable[[dict[str, Any]], bool], otherwise: str, timeout: float
    ) -> dict[str, Any]:
        __tracebackhide__ = True
        sagemaker = self.client("sagemaker")
        deadline = time.monotonic() + timeout
        while True:
            described = self._describe(sagemaker, name)
            if is_over(described):
                return described
            if time.monotonic() > deadline:
                raise self.failure(f"{name} {otherwise} after {timeout:g} s.\n{self._explain(described)}")
            time.sleep(_POLL_SECONDS)

    def _describe(self, sagemaker: Any, name: str) -> dict[str, Any]:
        __tracebackhide__ = True
        try:
            described: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
        except sagemaker.exceptions.ClientError as error:
            # The traceback of the client would hide the message.
            raise self.failure(
                f"The training job {name!r} cannot be described in {self.region}: {error.response['Error']['Message']}"
            ) from None
        return described

    def _explain(self, described: dict[str, Any], rule: dict[str, Any] | None = None) -> str:
        """Describe the state of a job and of one rule, or of all rules, with the last lines of the logs."""
        name = described["TrainingJobName"]
        lines = [f"{name}: {described['TrainingJobStatus']}, {described['SecondaryStatus']}"]
        if "FailureReason" in described:
            lines.append(f"  {described['FailureReason']}")
        for each in list_rules(described) if rule is None else [rule]:
            lines.append(f"{each['RuleConfigurationName']}: {each['RuleEvaluationStatus']}")
            lines += [f"  {line}" for line in each.get("StatusDetails", "").splitlines()]
        lines += self._read_log("training job", name)
        if rule is not None:
            lines += self._read_log("rule", rule["RuleEvaluationJobArn"].rpartition("/")[2])
        return "\n".join(lines)

    def _read_log(self, kind: str, name: str) -> list[str]:
        logs, group = self.client("logs"), _LOG_GROUPS[kind]
        try:
            pages = logs.get_paginator("describe_log_streams").paginate(logGroupName=group)
            # An ARN has the rule's name in lower case.
            streams = [
                stream
                for page in pages
                for stream in page["logStreams"]
                if stream["logStreamName"].lower().startswith(f"{name}/".lower())
            ]
        except logs.exceptions.ResourceNotFoundException:
            streams = []
        lines: list[str] = []
        for stream in streams:
            found = logs.get_log_events(
                logGroupName=group, logStreamName=stream["logStreamName"], limit=_LOG_LINES, startFromHead=False
            )
            lines += [f"  {event['message'][:_LINE_WIDTH]}" for event in found["events"]]
        return [f"Last lines of the {kind}'s log:", *(lines or ["  (none)"])]


def list_rules(described: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the evaluation statuses of the rules in a job's description, those of the profiler last."""
    members = ("DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses")
    return [rule for member in members for rule in described.get(member, ())]


def _check_status(kind: str, status: str | None, ends: Sequence[str]) -> None:
    __tracebackhide__ = True
    if status is not None and status not in ends:
        raise ValueError(f"No {kind} ends with the status {status!r}: use {', '.join(ends)}.")


def _get_rule(described: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the evaluation status of a rule from a job's description; empty if the job has no such rule."""
    return next((rule for rule in list_rules(described) if rule["RuleConfigurationName"] == name), {})
