"""``/_emulator/jobs/REGION/NAME/profile``: what a job used, where its time went, its profiles of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.exceptions import ResourceNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from emulator.api.account_rooms import RoomsOfRequests
    from emulator.api.run_readers import RunReaders
    from emulator.jobs.records.training_job import TrainingJob


def build_profiles_pages(
    rooms: RoomsOfRequests, readers: RunReaders, locate_measures: Callable[[TrainingJob], Path]
) -> Blueprint:
    """Build the pages.

    Args:
        rooms: find the account's.
        readers: read the profiles.
        locate_measures: finds where what is measured of a job that runs lies until its minute is over.
    """
    pages = Blueprint("profiles", __name__)

    def ask(region: str, name: str, question: str, arguments: Mapping[str, Any]) -> Any:
        from emulator.jobs.staging.s3_paths import build_profiler_uri

        account = rooms.find()
        job = account.find_training_job(region, name)
        if "ProfilerConfig" not in job.request:
            raise ResourceNotFound(f"{name} is not profiled: it was created without a ProfilerConfig.", status=404)
        asked = {**arguments, "unfinished": str(locate_measures(job))}
        return jsonify(readers.ask(account.account, build_profiler_uri(job), question, asked))

    @pages.get(f"{PREFIX}jobs/<region>/<name>/profile")
    def describe(region: str, name: str) -> Any:
        return ask(region, name, "profile", _read_query("points"))

    @pages.get(f"{PREFIX}jobs/<region>/<name>/profile/flame-graph")
    def draw(region: str, name: str) -> Any:
        return ask(region, name, "flame-graph", _read_query("process", "profiler", "name"))

    return pages


def _read_query(*names: str) -> dict[str, str]:
    return {name: request.args[name] for name in names if name in request.args}
