"""Emulator of a test session: what a test created, and the results of its jobs."""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from sdk_compat.aws_variables import CA_VARIABLE
from sdk_compat.emulator_client import EmulatorClient, list_rules
from sdk_compat.environment import DEFAULT_ACCOUNT_ID, DEFAULT_REGION, prepare_environment
from sdk_compat.process_environment import forget_default_session
from sdk_compat.remote import RemoteEmulator

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sdk_compat.emulator_process import EmulatorProcess

ROLE_NAME = "sagemaker-tests"
_POLL_SECONDS = 0.1
# Creation times are rounded to milliseconds; the start times of tests are not.
_CREATED_WITHIN = 0.001
# A rule's files may be uploaded to S3 only after its status has changed.
_PLOT_SECONDS = 20.0
_NO_FILES: dict[str, Any] = {"plot": None, "series": []}
# The emulator's maximum for one response.
_MOST_JOBS = 10_000


class SessionEmulator(EmulatorClient):
    """The emulator of a test session. A test fails where a job is not as it expects.

    Attributes:
        variables: the environment variables that redirect AWS clients to the emulator.
    """

    failure = pytest.fail.Exception

    def __init__(self, folder: Path, process: EmulatorProcess | RemoteEmulator) -> None:
        """Take ownership of a running emulator: ``stop`` ends it.

        Args:
            folder: the folder of the emulator's state and of its clients' configuration files; no other emulator may
                use it.
            process: the emulator's process, or the emulator elsewhere.
        """
        # None for the certificates that the environment names, if any.
        self._ca_bundle: str | None = getattr(process, "ca_bundle", None)
        region = getattr(process, "region", DEFAULT_REGION)
        super().__init__(process.endpoint_url, ROLE_NAME, region, self._ca_bundle)
        self._is_remote = isinstance(process, RemoteEmulator)
        self.account_id = getattr(process, "account_id", DEFAULT_ACCOUNT_ID)
        self.role_arn = f"arn:aws:iam::{self.account_id}:role/{ROLE_NAME}"
        self._folder = folder
        self._process = process
        self._before_reset: list[dict[str, Any]] = []
        self._tests: list[tuple[float, str]] = []
        # Jobs of others, which an emulator elsewhere may have had before.
        self._others = {(job["region"], job["name"]) for job in self._list_summaries()} if self._is_remote else set()
        try:
            self.variables = self._prepare_environment()
        except BaseException:
            self._process.stop()
            raise

    def note_test(self, name: str) -> None:
        """Record that a test starts. Jobs that are created from now on are attributed to it."""
        self._tests.append((time.time(), name))

    def log_text(self) -> str:
        """Return the emulator's log so far."""
        return self._process.log_text()

    def reset(self) -> None:
        """Stop all jobs and delete everything in all services. The buckets of the fixtures are created again, empty."""
        self._before_reset += self._list_jobs(with_plots=False)
        super().reset()
        # The reset also deleted the role and its credentials, which the current test's environment still has.
        self.variables.update(self._prepare_environment())
        os.environ.update(self.variables)
        forget_default_session()

    def collect_jobs(self, *, with_plots: bool) -> list[dict[str, Any]]:
        """Describe all training jobs for the report, including those from before a reset."""
        return self._before_reset + self._list_jobs(with_plots=with_plots)

    def _list_jobs(self, *, with_plots: bool) -> list[dict[str, Any]]:
        own = (job for job in self._list_summaries() if (job["region"], job["name"]) not in self._others)
        deadline = time.monotonic() + _PLOT_SECONDS
        return [
            self._describe_job(job["region"], job["name"], deadline if with_plots else None)
            for job in sorted(own, key=lambda job: job["creationMs"])
        ]

    def _list_summaries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._process.ask(f"jobs?limit={_MOST_JOBS}")["jobs"]
        return found

    def _send_reset(self) -> None:
        # One that others may use keeps for a day what it forgets.
        self._process.ask("reset?keep=1" if self._is_remote else "reset", "POST")

    def stop(self, *, keep: bool) -> None:
        """Stop the emulator with all its jobs. Its folder is deleted, unless ``keep`` is true."""
        self._process.stop()
        if not keep:
            shutil.rmtree(self._folder)

    def _prepare_environment(self) -> dict[str, str]:
        # Only clients that are led trust it: others may be for the user's account in AWS.
        trusted = {} if self._ca_bundle is None else {CA_VARIABLE: self._ca_bundle}
        variables = prepare_environment(
            self.endpoint_url,
            {**os.environ, **trusted},
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

    def _describe_job(self, region: str, name: str, deadline: float | None) -> dict[str, Any]:
        """Describe a job, with the plots of its rules if there is a deadline (monotonic seconds) for them."""
        # The list may be old by now: the plots of the jobs before this one may have been waited for.
        job = self._process.ask(f"jobs/{region}/{name}")
        described = job["description"]
        return {
            "name": name,
            "region": region,
            "status": job["status"],
            "reason": job["failureReason"] or "",
            "warnings": job["warnings"],
            "test": find_test(self._tests, job["creationMs"] / 1000),
            "state_dir": str(self._process.state_dir),
            "rules": [
                {
                    "name": rule["RuleConfigurationName"],
                    "status": rule["RuleEvaluationStatus"],
                    "details": rule.get("StatusDetails", ""),
                    **(_NO_FILES if deadline is None else self._read_files(region, described, rule, deadline)),
                }
                for rule in list_rules(described)
            ],
        }

    def _read_files(
        self, region: str, described: dict[str, Any], rule: dict[str, Any], deadline: float
    ) -> dict[str, Any]:
        """Read a rule's ``plot`` (SVG text) and ``series`` (the values in its report).

        Both are empty for a rule without a report, or whose report or bucket a test has deleted.
        """
        if rule["RuleEvaluationStatus"] not in ("IssuesFound", "NoIssuesFound"):
            return _NO_FILES
        name = rule["RuleConfigurationName"]
        members = ("DebugRuleConfigurations", "ProfilerRuleConfigurations")
        configurations = [each for member in members for each in described.get(member, ())]
        configured = next(each for each in configurations if each["RuleConfigurationName"] == name)
        base = configured.get("S3OutputPath") or described["OutputDataConfig"]["S3OutputPath"]
        bucket, _, prefix = base.removeprefix("s3://").rstrip("/").partition("/")
        folder = "/".join(filter(None, (prefix, described["TrainingJobName"], "rule-output", name)))
        s3 = self.client("s3", region)
        while True:
            try:
                listed = s3.list_objects_v2(Bucket=bucket, Prefix=f"{folder}/")
            except s3.exceptions.NoSuchBucket:
                return _NO_FILES
            keys = {found["Key"] for found in listed.get("Contents", ())}
            if f"{folder}/report.json" in keys:
                found = {
                    name: s3.get_object(Bucket=bucket, Key=f"{folder}/{name}")["Body"].read().decode()
                    for name in ("plot.svg", "report.json")
                    if f"{folder}/{name}" in keys
                }
                return {"plot": found.get("plot.svg"), "series": json.loads(found["report.json"]).get("Series", [])}
            if time.monotonic() >= deadline:
                return _NO_FILES
            time.sleep(_POLL_SECONDS)


def find_test(tests: Sequence[tuple[float, str]], created: float) -> str:
    """Find the test during which a job was created, and return its name.

    A job that a module or session fixture creates is attributed to the first test that uses the fixture.

    Args:
        tests: the start time in epoch seconds and the name of each test.
        created: the job's creation time in epoch seconds, rounded to the millisecond.
    """
    began = [name for start, name in tests if start < created + _CREATED_WITHIN]
    return began[-1] if began else ""
