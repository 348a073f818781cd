"""Notebook display of training jobs and of their rules' findings.

    from smdebug_emulator import TrainingJob, TrainingJobs

    TrainingJobs()                       # the newest jobs with their rules
    TrainingJob("digits-sick")           # or an estimator, or a ModelTrainer, of the SageMaker SDK
    TrainingJob("digits-sick").rules[0]
    TrainingJob("digits-sick").trial     # the tensors that it saved
    TrainingJob("digits-sick").watch()   # updated until the job and its rules have ended

The data is requested when an object is displayed, so running a cell again shows the current state of the job.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from importlib import import_module
from threading import Thread
from time import sleep
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import urlopen

from sdk_compat.job_objects import read_job_name

_API = "/_emulator/"
_ANSWER_SECONDS = 60
# A shape and a colour for each status, as in the console. The shape is for users who cannot distinguish the colours.
_MARKS = {
    "InProgress": ("◐", "#0757a8"),
    "Stopping": ("◧", "#0757a8"),
    "Completed": ("●", "#14652f"),
    "NoIssuesFound": ("●", "#14652f"),
    "IssuesFound": ("▲", "#b42318"),
    "Failed": ("✖", "#b42318"),
    "Error": ("✖", "#b42318"),
}


class TrainingJob:
    """A training job of the emulator.

    Attributes:
        name: the full name.
        region: the job's region.
    """

    def __init__(self, job: Any, endpoint_url: str | None = None) -> None:
        """Find the job.

        Args:
            job: the job's name, a part of the name, REGION/NAME, an estimator on which fit() was called, or a
                ModelTrainer on which train() was called. A part must match exactly one job: the only one whose name
                starts with it, or, if there is none, the only one whose name contains it.
            endpoint_url: the emulator's URL; AWS_ENDPOINT_URL in the environment if None.

        Raises:
            LookupError: no job or more than one job matches, or the estimator has no job.
            ConnectionError: no emulator responds.
        """
        self._endpoint_url = _find_endpoint(endpoint_url)
        name = _read_name(job)
        if not name:
            raise LookupError("Which training job? Give its name; TrainingJobs() shows the latest ones.")
        matches = _ask(self._endpoint_url, "job-names", text=name)
        meant, count = matches["jobs"], int(matches["count"])
        if not count:
            raise LookupError(f"There is no training job {name} at {self._endpoint_url}.")
        if count > 1:
            listed = ", ".join(f"{each['region']}/{each['name']}" for each in meant)
            more = f" and {count - len(meant)} more" if count > len(meant) else ""
            raise LookupError(f"{name} matches {count} training jobs: {listed}{more}. Give more of the name.")
        self.name, self.region = str(meant[0]["name"]), str(meant[0]["region"])

    @property
    def rules(self) -> list[RuleResult]:
        """The results of the job's rules, so far if the rules still run."""
        return [RuleResult(self._endpoint_url, self.region, each) for each in self._describe()["rules"]]

    @property
    def status(self) -> str:
        """The current TrainingJobStatus."""
        return str(self._describe()["status"])

    @property
    def console_url(self) -> str:
        """The URL of the job's page in the emulator's console."""
        return _locate_page(self._endpoint_url, self.region, self.name)

    @property
    def trial(self) -> Any:
        """The tensors that the job saved, as a trial of the installed smdebug.

        Raises:
            LookupError: the job was created without a DebugHookConfig.
            ConnectionError: the AWS clients of this process do not use this emulator.
        """
        config = self._describe()["description"].get("DebugHookConfig")
        if config is None:
            raise LookupError(f"{self.name} saves no tensors: it was created without a DebugHookConfig.")
        if os.environ.get("AWS_ENDPOINT_URL", "").rstrip("/") != self._endpoint_url:
            raise ConnectionError(
                f"AWS clients of this process do not use the emulator at {self._endpoint_url}: %load_ext "
                'smdebug_emulator, or eval "$(smdebug-emulator env)" before.'
            )
        # The library is imported by its name, because this package does not depend on it.
        create_trial = import_module("smdebug.trials").create_trial
        return create_trial(f"{config['S3OutputPath'].rstrip('/')}/{self.name}/debug-output")

    def watch(self, interval_s: float = 1.0) -> None:
        """Display the job, and update it in the same place until it and its rules have ended.

        Args:
            interval_s: the time between two looks, in seconds.

        Raises:
            ImportError: IPython is not installed.
        """
        display: Any = import_module("IPython.display").display  # part of a notebook, not of the emulator
        shown = display(self, display_id=True)
        if shown is not None:
            Thread(target=self._follow, args=(shown, interval_s), daemon=True).start()

    def _follow(self, shown: Any, interval_s: float) -> None:
        """Update a display until nothing changes any more."""
        has_ended = False
        # When the emulator has ended, what is displayed is the last that it said.
        with suppress(LookupError, ConnectionError):
            while not has_ended:
                job = self._describe()
                has_ended = job["endMs"] and all(rule["endMs"] for rule in job["rules"])
                shown.update(self)
                if not has_ended:
                    sleep(interval_s)

    def _describe(self) -> dict[str, Any]:
        return _ask(self._endpoint_url, f"jobs/{quote(self.region, safe='')}/{quote(self.name, safe='')}")

    def __repr__(self) -> str:
        return f"TrainingJob({self.name!r}, status={self.status!r})"

    def _repr_html_(self) -> str:
        job = self._describe()
        rules = [RuleResult(self._endpoint_url, self.region, each)._repr_html_() for each in job["rules"]]
        reason = f"<p>{escape(job['failureReason'])}</p>" if job["failureReason"] else ""
        warnings = "".join(
            f"<li><strong>{escape(each['code'])}</strong>: {escape(each['text'])} {escape(each['remedy'])}</li>"
            for each in job["warnings"]
        )
        duration = f"{((job['endMs'] or datetime.now(UTC).timestamp() * 1000) - job['creationMs']) / 1000:.0f} s"
        facts = f"{escape(job['secondaryStatus'])}, {duration}, {escape(self.region)}"
        head = f"<p><strong>{_link(self.console_url, self.name)}</strong> {_mark(job['status'])} {facts}</p>"
        return f"{head}{reason}{warnings and f'<ul>{warnings}</ul>'}{''.join(rules)}"


class TrainingJobs:
    """The newest training jobs of the emulator, of all regions."""

    def __init__(self, limit: int = 20, endpoint_url: str | None = None) -> None:
        """Store the settings. The jobs are requested when the object is displayed.

        Args:
            limit: the maximum number of jobs.
            endpoint_url: the emulator's URL; AWS_ENDPOINT_URL in the environment if None.
        """
        self._endpoint_url = _find_endpoint(endpoint_url)
        self._limit = limit

    def __repr__(self) -> str:
        return "\n".join(f"{job['name']}  {job['status']}" for job in self._list()) or "No training jobs yet."

    def _repr_html_(self) -> str:
        rows = []
        for job in self._list():
            url = _locate_page(self._endpoint_url, job["region"], job["name"])
            rules = "<br>".join(_mark(each["status"], each["name"]) for each in job["rules"]) or "-"
            created = datetime.fromtimestamp(job["creationMs"] / 1000, UTC).astimezone().strftime("%m-%d %H:%M:%S")
            cells = (_link(url, job["name"]), _mark(job["status"]), rules, created)
            rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
        head = "<tr><th>Training job</th><th>Status</th><th>Rules</th><th>Created</th></tr>"
        return f"<table>{head}{''.join(rows)}</table>" if rows else "<p>No training jobs yet.</p>"

    def _list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = _ask(self._endpoint_url, "jobs", limit=self._limit)["jobs"]
        return found


class RuleResult:
    """The result of one rule of a job.

    Attributes:
        name: the RuleConfigurationName.
        status: the RuleEvaluationStatus.
        details: the StatusDetails; empty if there are none.
    """

    def __init__(self, endpoint_url: str, region: str, described: dict[str, Any]) -> None:
        """Store the rule's description from the emulator's API."""
        self._endpoint_url, self._region, self._described = endpoint_url, region, described
        self.name = str(described["name"])
        self.status = str(described["status"])
        self.details = str(described["details"] or "")

    def __repr__(self) -> str:
        return f"RuleResult({self.name!r}, status={self.status!r})"

    def _repr_html_(self) -> str:
        details = escape(self.details).replace("\n", "<br>")
        plot = self._read_plot() if self._described["endMs"] else None
        # Scripts in an SVG do not run in an img element.
        picture = f'<img alt="{escape(self.name)}" src="data:image/svg+xml;base64,{plot}">' if plot else ""
        return f"<div><p>{_mark(self.status, self.name)}</p><p>{details}</p>{picture}</div>"

    def _read_plot(self) -> str | None:
        bucket, _, prefix = str(self._described["outputUri"]).removeprefix("s3://").partition("/")
        key = f"{prefix.rstrip('/')}/plot.svg"
        try:
            return base64.b64encode(_fetch(self._endpoint_url, f"s3/{quote(bucket)}/object", key=key)).decode()
        except LookupError:
            return None


def _locate_page(endpoint_url: str, region: str, name: str) -> str:
    return f"{endpoint_url}/console#/jobs/{quote(region, safe='')}/{quote(name, safe='')}"


def _link(url: str, text: str) -> str:
    return f'<a href="{escape(url)}" target="_blank"><bdi>{escape(text)}</bdi></a>'


def _mark(status: str, of: str = "") -> str:
    shape, colour = _MARKS.get(status, ("■", "inherit"))
    words = f"<bdi>{escape(of)}</bdi>: {escape(status)}" if of else escape(status)
    return f'<span style="color:{colour}">{shape} {words}</span>'


def _read_name(job: Any) -> str:
    try:
        return read_job_name(job)
    except TypeError as error:
        raise LookupError(f"{type(job).__name__} has no training job yet. {error}") from None


def _find_endpoint(endpoint_url: str | None) -> str:
    found = endpoint_url or os.environ.get("AWS_ENDPOINT_URL")
    if not found:
        raise ConnectionError(
            "No emulator is named: in a notebook, %load_ext smdebug_emulator names one; elsewhere, give endpoint_url, "
            'or eval "$(smdebug-emulator env)" before.'
        )
    return found.rstrip("/")


def _ask(endpoint_url: str, path: str, **query: object) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_fetch(endpoint_url, path, **query))
    return found


def _fetch(endpoint_url: str, path: str, **query: object) -> bytes:
    """Request a path of the emulator's API and return the body of the response.

    Raises:
        LookupError: the response is an HTTP error.
        ConnectionError: no emulator responds.
    """
    url = f"{endpoint_url}{_API}{path}?{urlencode(query)}"
    try:
        trusted = (
            ssl.create_default_context(cafile=os.environ.get("AWS_CA_BUNDLE")) if url.startswith("https") else None
        )
        with urlopen(url, timeout=_ANSWER_SECONDS, context=trusted) as answer:  # noqa: S310 -- the address of the user's own emulator
            content: bytes = answer.read()
            return content
    except HTTPError as error:
        with error:
            said = error.read().decode(errors="replace")
        raise LookupError(said[:500]) from None
    except URLError as error:
        raise ConnectionError(f"The emulator at {endpoint_url} does not answer: {error.reason}") from error
