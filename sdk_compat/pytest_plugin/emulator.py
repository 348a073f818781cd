"""Emulator fixture object: clients, waits for jobs and rules, and job results."""

from __future__ import annotations

import json
import os
import shutil
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.environment import DEFAULT_ACCOUNT_ID, DEFAULT_REGION, prepare_environment
from sdk_compat.remote import RemoteEmulator
from sdk_compat.sagemaker_v2 import local_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from sdk_compat.emulator_process import EmulatorProcess

ROLE_NAME = "sagemaker-tests"
_WAIT_SECONDS = 600.0
_POLL_SECONDS = 0.1
# Creation times are rounded to milliseconds; the start times of tests are not.
_CREATED_WITHIN = 0.001
# A rule's files may be uploaded to S3 only after its status has changed.
_PLOT_SECONDS = 20.0
_NO_FILES: dict[str, Any] = {"plot": None, "series": []}
_LOG_LINES, _LINE_WIDTH = 15, 300
# The emulator's maximum for one response.
_MOST_JOBS = 10_000
_UNFINISHED = ("InProgress", "Stopping")
_LOG_GROUPS = {"training job": "/aws/sagemaker/TrainingJobs", "rule": "/aws/sagemaker/ProcessingJobs"}


class SageMakerEmulator:
    """A running emulator, with methods that create clients and wait for jobs.

    Attributes:
        endpoint_url: the emulator's URL.
        region: the region of its clients, and of clients that read the environment.
        account_id: the AWS account of all resources.
        role_arn: an existing IAM role, which ``sagemaker.get_execution_role()`` returns.
        variables: the environment variables that redirect AWS clients to the emulator.
        boto3_session: a ``boto3.Session`` whose clients use the emulator.
    """

    def __init__(self, folder: Path, process: EmulatorProcess | RemoteEmulator) -> None:
        """Take ownership of a running emulator: ``stop`` ends it.

        Args:
            folder: the folder of the emulator's state and of its clients' configuration files; no other emulator may
                use it.
            process: the emulator's process, or the emulator elsewhere.
        """
        self._is_remote = isinstance(process, RemoteEmulator)
        self.region = getattr(process, "region", DEFAULT_REGION)
        self.account_id = getattr(process, "account_id", DEFAULT_ACCOUNT_ID)
        self.role_arn = f"arn:aws:iam::{self.account_id}:role/{ROLE_NAME}"
        self._folder = folder
        self._process = process
        self.endpoint_url = process.endpoint_url
        self.boto3_session = EmulatorSession(self.endpoint_url, self.region)
        self._before_reset: list[dict[str, Any]] = []
        self._buckets: list[str] = []
        self._tests: list[tuple[float, str]] = []
        # Jobs of others, which an emulator elsewhere may have had before.
        self._others = {(job["region"], job["name"]) for job in self._list_names()} if self._is_remote else set()
        try:
            self.variables = self._prepare_environment()
        except BaseException:
            self._process.stop()
            raise

    def note_test(self, name: str) -> None:
        """Record that a test starts. Jobs that are created from now on are attributed to it."""
        self._tests.append((time.time(), name))

    def client(self, service: str, region: str | None = None) -> Any:
        """Create a boto3 client that uses the emulator."""
        return self.boto3_session.client(service, region_name=region or self.region)

    def open_sagemaker_session(self) -> Any:
        """Create a session of version 2 of the SageMaker Python SDK."""
        session = local_session(self.endpoint_url, self.region)
        self._buckets.append(session.default_bucket())
        return session

    def make_bucket(self, name: str) -> str:
        """Create an S3 bucket and return its name. ``reset`` creates it again."""
        self.client("s3").create_bucket(Bucket=name)
        self._buckets.append(name)
        return name

    def log_text(self) -> str:
        """Return the emulator's log so far."""
        return self._process.log_text()

    def reset(self) -> None:
        """Stop all jobs and delete everything in all services. The buckets of the fixtures are created again, empty."""
        self._before_reset += self._list_jobs(with_plots=False)
        # One that others may use keeps for a day what it forgets.
        self._process.ask("reset?keep=1" if self._is_remote else "reset", "POST")
        for name in self._buckets:
            self.client("s3").create_bucket(Bucket=name)
        # The reset also deleted the role and its credentials, which the current test's environment still has.
        self.variables.update(self._prepare_environment())
        os.environ.update(self.variables)
        boto3.DEFAULT_SESSION = None  # it would keep the old credentials

    def wait_for_training_job(
        self, job: Any, status: str | None = None, timeout: float = _WAIT_SECONDS
    ) -> dict[str, Any]:
        """Wait until a training job has ended and return the response of DescribeTrainingJob.

        Args:
            job: the job's name, an estimator, or another object that ``read_job_name`` accepts.
            status: the expected TrainingJobStatus; the test fails if the job ends with another one.
            timeout: the number of seconds after which the test fails.
        """
        __tracebackhide__ = True
        name = read_job_name(job)
        described = self._wait(
            name, lambda found: found["TrainingJobStatus"] not in _UNFINISHED, "did not end", timeout
        )
        if status is not None and described["TrainingJobStatus"] != status:
            pytest.fail(f"{name} is {described['TrainingJobStatus']}, not {status}.\n{self._explain(described)}")
        return described

    def wait_for_rules(self, job: Any, timeout: float = _WAIT_SECONDS) -> dict[str, str]:
        """Wait until all rules of a training job have ended.

        Args:
            job: the job's name, an estimator, or another object that ``read_job_name`` accepts.
            timeout: the number of seconds after which the test fails.

        Returns:
            The RuleEvaluationStatus of each rule, by RuleConfigurationName.
        """
        __tracebackhide__ = True
        described = self._wait(
            read_job_name(job),
            lambda found: all(rule["RuleEvaluationStatus"] not in _UNFINISHED for rule in _list_rules(found)),
            "has rules that are still evaluated",
            timeout,
        )
        return {rule["RuleConfigurationName"]: rule["RuleEvaluationStatus"] for rule in _list_rules(described)}

    def assert_rule(self, job: Any, rule: str, status: str, timeout: float = _WAIT_SECONDS) -> None:
        """Wait until a rule has ended and check its status.

        If the status differs, the test fails with the rule's StatusDetails, the job's FailureReason and the last lines
        of both logs.

        Args:
            job: the job's name, an estimator, or another object that ``read_job_name`` accepts.
            rule: the rule's RuleConfigurationName.
            status: the expected RuleEvaluationStatus.
            timeout: the number of seconds after which the test fails.
        """
        __tracebackhide__ = True
        name = read_job_name(job)

        def is_judged(found: dict[str, Any]) -> bool:
            return _get_rule(found, rule).get("RuleEvaluationStatus") not in _UNFINISHED

        described = self._wait(name, is_judged, f"has no verdict of {rule}", timeout)
        judged = _get_rule(described, rule)
        if not judged:
            known = ", ".join(each["RuleConfigurationName"] for each in _list_rules(described))
            pytest.fail(f"{name} has no rule {rule!r}; its rules are: {known or 'none'}.")
        if judged["RuleEvaluationStatus"] != status:
            verdict = f"{rule} of {name} is {judged['RuleEvaluationStatus']}, not {status}."
            pytest.fail(f"{verdict}\n{self._explain(described, judged)}")

    def open_trial(self, job: Any) -> Any:
        """Open the tensors that a training job saved, as an smdebug trial."""
        described = self.client("sagemaker").describe_training_job(TrainingJobName=read_job_name(job))
        if "DebugHookConfig" not in described:
            pytest.fail(f"{read_job_name(job)} saves no tensors: it was created without a DebugHookConfig.")
        # This imports the smdebug library that the test has installed; this package does not depend on it.
        trials = import_module("smdebug.trials")
        base = described["DebugHookConfig"]["S3OutputPath"].rstrip("/")
        return trials.create_trial(f"{base}/{described['TrainingJobName']}/debug-output")

    def collect_jobs(self, *, with_plots: bool) -> list[dict[str, Any]]:
        """Describe all training jobs for the report, including those from before a reset."""
        return self._before_reset + self._list_jobs(with_plots=with_plots)

    def _list_jobs(self, *, with_plots: bool) -> list[dict[str, Any]]:
        regions = self._process.ask("health")["jobRegions"]
        jobs = [job for region in regions for job in self._describe_jobs_of(region, with_plots=with_plots)]
        warnings = {(job["region"], job["name"]): job["warnings"] for job in self._list_names()}
        for job in jobs:
            job["warnings"] = warnings.get((job["region"], job["name"]), [])
            job["test"] = find_test(self._tests, float(job["created"]))
        return sorted(jobs, key=lambda job: float(job["created"]))

    def _list_names(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._process.ask(f"jobs?limit={_MOST_JOBS}")["jobs"]
        return found

    def stop(self, *, keep: bool) -> None:
        """Stop the emulator with all its jobs. Its folder is deleted, unless ``keep`` is true."""
        self._process.stop()
        if not keep:
            shutil.rmtree(self._folder)

    def _prepare_environment(self) -> dict[str, str]:
        variables = prepare_environment(
            self.endpoint_url,
            os.environ,
            region=self.region,
            folder=self._folder / "clients",
            role_name=ROLE_NAME,
        )
        if self._is_remote:  # it may require signatures, and then a role without policies may do nothing
            document = {"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
            self.client("iam").put_role_policy(
                RoleName=ROLE_NAME, PolicyName="tests", PolicyDocument=json.dumps(document)
            )
        return variables

    def _wait(
        self, name: str, is_over: Callable[[dict[str, Any]], bool], otherwise: str, timeout: float
    ) -> dict[str, Any]:
        __tracebackhide__ = True
        sagemaker = self.client("sagemaker")
        deadline = time.monotonic() + timeout
        while True:
            try:
                described: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
            except sagemaker.exceptions.ClientError as error:
                # The traceback of the client would hide the message.
                raise pytest.fail.Exception(f"The training job {name!r} cannot be described: {error}") from None
            if is_over(described):
                return described
            if time.monotonic() > deadline:
                pytest.fail(f"{name} {otherwise} after {timeout:g} s.\n{self._explain(described)}")
            time.sleep(_POLL_SECONDS)

    def _explain(self, described: dict[str, Any], rule: dict[str, Any] | None = None) -> str:
        """Describe the state of a job and of one rule, or of all rules, with the last lines of the logs."""
        name = described["TrainingJobName"]
        lines = [f"{name}: {described['TrainingJobStatus']}, {described['SecondaryStatus']}"]
        if "FailureReason" in described:
            lines.append(f"  {described['FailureReason']}")
        for each in _list_rules(described) if rule is None else [rule]:
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

    def _describe_jobs_of(self, region: str, *, with_plots: bool) -> Iterator[dict[str, Any]]:
        sagemaker = self.client("sagemaker", region)
        for page in sagemaker.get_paginator("list_training_jobs").paginate():
            for summary in page["TrainingJobSummaries"]:
                if (region, summary["TrainingJobName"]) in self._others:
                    continue
                described = sagemaker.describe_training_job(TrainingJobName=summary["TrainingJobName"])
                yield {
                    "name": described["TrainingJobName"],
                    "region": region,
                    "created": described["CreationTime"].timestamp(),
                    "status": described["TrainingJobStatus"],
                    "secondary": described["SecondaryStatus"],
                    "reason": described.get("FailureReason", ""),
                    "seconds": described.get("TrainingTimeInSeconds"),
                    "state_dir": str(self._process.state_dir),
                    "rules": [
                        {
                            "name": rule["RuleConfigurationName"],
                            "status": rule["RuleEvaluationStatus"],
                            "details": rule.get("StatusDetails", ""),
                            **(self._read_files(region, described, rule) if with_plots else _NO_FILES),
                        }
                        for rule in _list_rules(described)
                    ],
                }

    def _read_files(self, region: str, described: dict[str, Any], rule: dict[str, Any]) -> dict[str, Any]:
        """Read a rule's ``plot`` (SVG text) and ``series`` (the values in its report).

        Both are empty for a rule without a report.
        """
        if rule["RuleEvaluationStatus"] not in ("IssuesFound", "NoIssuesFound"):
            return _NO_FILES
        name = rule["RuleConfigurationName"]
        configured = next(
            each for each in described["DebugRuleConfigurations"] if each["RuleConfigurationName"] == name
        )
        base = configured.get("S3OutputPath") or described["OutputDataConfig"]["S3OutputPath"]
        bucket, _, prefix = base.removeprefix("s3://").rstrip("/").partition("/")
        folder = "/".join(filter(None, (prefix, described["TrainingJobName"], "rule-output", name)))
        s3 = self.client("s3", region)
        deadline = time.monotonic() + _PLOT_SECONDS
        while time.monotonic() < deadline:
            keys = {
                found["Key"] for found in s3.list_objects_v2(Bucket=bucket, Prefix=f"{folder}/").get("Contents", ())
            }
            if f"{folder}/report.json" in keys:
                found = {
                    name: s3.get_object(Bucket=bucket, Key=f"{folder}/{name}")["Body"].read().decode()
                    for name in ("plot.svg", "report.json")
                    if f"{folder}/{name}" in keys
                }
                return {"plot": found.get("plot.svg"), "series": json.loads(found["report.json"]).get("Series", [])}
            time.sleep(_POLL_SECONDS)
        return _NO_FILES


def find_test(tests: Sequence[tuple[float, str]], created: float) -> str:
    """Find the test during which a job was created, and return its name.

    A job that a module or session fixture creates is attributed to the first test that uses the fixture.

    Args:
        tests: the start time in epoch seconds and the name of each test.
        created: the job's creation time in epoch seconds, rounded to the millisecond.
    """
    began = [name for start, name in tests if start < created + _CREATED_WITHIN]
    return began[-1] if began else ""


def read_job_name(job: Any) -> str:
    """Return the name of a training job.

    Args:
        job: the name, a response of DescribeTrainingJob, an estimator, or a job object of a SageMaker SDK.

    Raises:
        TypeError: the object has no job name.
    """
    if isinstance(job, dict):
        job = job.get("TrainingJobName")
    for attribute in ("latest_training_job", "_latest_training_job"):
        job = getattr(job, attribute, None) or job
    name = job if isinstance(job, str) else getattr(job, "training_job_name", None) or getattr(job, "name", None)
    if not isinstance(name, str):
        raise TypeError(f"{job!r} names no training job: give its name, or an estimator whose fit() was called.")
    return name


def _list_rules(described: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = described.get("DebugRuleEvaluationStatuses", [])
    return found


def _get_rule(described: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the evaluation status of a rule from a job's description; empty if the job has no such rule."""
    return next((rule for rule in _list_rules(described) if rule["RuleConfigurationName"] == name), {})
