"""``/_emulator/training-jobs/NAME/interrupt``: Spot interruption of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.exceptions import AwsError

if TYPE_CHECKING:
    from collections.abc import Callable


def build_spot_pages(interrupt: Callable[[str | None, str, float], None]) -> Blueprint:
    """Build the page.

    Args:
        interrupt: takes the region, or None for the emulator's own, the job's name, and for how many seconds there is
            no other instance; raises an AwsError where there is nothing to interrupt.
    """
    pages = Blueprint("spot", __name__)

    @pages.post(f"{PREFIX}training-jobs/<name>/interrupt")
    def interrupt_job(name: str) -> tuple[Any, int]:
        seconds = request.args.get("capacityAfterSeconds", "0")
        try:
            # Neither a sign nor "nan": digits, and at most what a job may wait.
            wait = float(seconds) if seconds.replace(".", "", 1).isdecimal() else -1.0
            if not 0 <= wait <= 28 * 24 * 3600:
                message = f"capacityAfterSeconds is {seconds[:40]!r}: give seconds, from 0 to 2419200."
                return jsonify(error=message), 400
            interrupt(request.args.get("region"), name, wait)
        except AwsError as error:
            return jsonify(error=error.message), error.status
        return jsonify(name=name, capacityAfterSeconds=wait), 202

    return pages
