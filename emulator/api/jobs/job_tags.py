"""``/_emulator/jobs/REGION/NAME/tags``: AWS tags of a job, a note among them."""

import re
from typing import Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts, find_training_job
from emulator.exceptions import ValidationException

# As AWS's model of AddTags has them; \w stands for its letters and digits of all scripts.
_KEY = re.compile(r"(?!aws:)[\w\s.:/=+\-@]{1,128}", re.IGNORECASE)
_VALUE = re.compile(r"[\w\s.:/=+\-@]{0,256}")


def build_tags_pages(accounts: RequestAccounts) -> Blueprint:
    """Build the route."""
    pages = Blueprint("job-tags", __name__)

    @pages.post(f"{PREFIX}jobs/<region>/<name>/tags")
    def change_tags(region: str, name: str) -> Any:
        jobs = accounts.find_jobs()
        job = find_training_job(jobs.services, region, name)
        wanted, removed = read_changes()
        if removed:
            jobs.tags.delete(job.arn, removed)
        if wanted:
            jobs.tags.add(job.arn, [{"Key": key, "Value": value} for key, value in wanted.items()])
        return jsonify(tags={each["Key"]: each["Value"] for each in jobs.tags.list_all(job.arn)})

    return pages


def read_changes() -> tuple[dict[str, str], list[str]]:
    """Read the request's body: tags to set, and keys to remove, which are those whose value is null.

    Raises:
        ValidationException: the body has no object ``tags``, or a tag is none that AWS accepts.
    """
    body = request.get_json(force=True, silent=True)
    given = body.get("tags") if isinstance(body, dict) else None
    if not isinstance(given, dict) or not given:
        raise ValidationException('Send JSON such as {"tags": {"note": "the baseline", "old-tag": null}}.')
    for key, value in given.items():
        if not _KEY.fullmatch(key) or not (value is None or (isinstance(value, str) and _VALUE.fullmatch(value))):
            raise ValidationException(
                f"{key[:128]!r} cannot be set: a tag's key has 1 to 128 characters and does not begin with aws:, its "
                "value has at most 256; letters, digits, spaces and _ . : / = + - @ are allowed."
            )
    return {key: value for key, value in given.items() if value is not None}, [
        key for key, value in given.items() if value is None
    ]
