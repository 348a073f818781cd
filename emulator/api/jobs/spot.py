"""``/_emulator/training-jobs/NAME/interrupt``: Spot interruption of a job."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.exceptions import AwsError


def build_spot_pages(interrupt: Callable[[str | None, str, float], None]) -> Blueprint:
    """Build the route.

    Args:
        interrupt: takes the region (None for the emulator's default region), the job's name, and the number of seconds
            until Spot capacity is available again. It raises an AwsError if there is nothing to interrupt.
    """
    pages = Blueprint("spot", __name__)

    @pages.post(f"{PREFIX}training-jobs/<name>/interrupt")
    def interrupt_job(name: str) -> tuple[Any, int]:
        seconds = request.args.get("capacityAfterSeconds", "0")
        try:
            # Only digits and a point are allowed, which excludes signs and "nan". The maximum is a job's longest wait.
            wait = float(seconds) if seconds.replace(".", "", 1).isdecimal() else -1.0
            if not 0 <= wait <= 28 * 24 * 3600:
                message = f"capacityAfterSeconds is {seconds[:40]!r}: give seconds, from 0 to 2419200."
                return jsonify(error=message), 400
            interrupt(request.args.get("region"), name, wait)
        except AwsError as error:
            return jsonify(error=error.message), error.status
        return jsonify(name=name, capacityAfterSeconds=wait), 202

    return pages
