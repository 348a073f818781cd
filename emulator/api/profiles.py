"""``/_emulator/jobs/REGION/NAME/profile``: system metrics and profiles of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.api.account_services import find_training_job
from emulator.exceptions import ResourceNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from emulator.api.account_services import RequestAccounts
    from emulator.api.run_readers import RunReaders
    from emulator.jobs.model.training_job import TrainingJob


def build_profiles_pages(
    accounts: RequestAccounts, readers: RunReaders, locate_measures: Callable[[TrainingJob], Path]
) -> Blueprint:
    """Build the routes.

    Args:
        accounts: finds the account's services.
        readers: reads the profiles.
        locate_measures: finds the folder with a running job's system metrics of the current minute, which are not yet
            in S3.
    """
    pages = Blueprint("profiles", __name__)

    def ask(region: str, name: str, question: str, arguments: Mapping[str, Any]) -> Any:
        from emulator.jobs.staging.s3_paths import build_profiler_uri

        account = accounts.find()
        job = find_training_job(account, region, name)
        if "ProfilerConfig" not in job.request:
            raise ResourceNotFound(f"{name} is not profiled: it was created without a ProfilerConfig.", status=404)
        asked = {**arguments, "unfinished": str(locate_measures(job))}
        return jsonify(readers.ask(account.account_id, build_profiler_uri(job), question, asked))

    @pages.get(f"{PREFIX}jobs/<region>/<name>/profile")
    def describe(region: str, name: str) -> Any:
        return ask(region, name, "profile", _read_query("points"))

    @pages.get(f"{PREFIX}jobs/<region>/<name>/profile/flame-graph")
    def draw(region: str, name: str) -> Any:
        return ask(region, name, "flame-graph", _read_query("process", "profiler", "name"))

    return pages


def _read_query(*names: str) -> dict[str, str]:
    return {name: request.args[name] for name in names if name in request.args}
