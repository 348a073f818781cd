"""Client of the emulator's own API, for commands."""

import json
from collections.abc import Iterable
from typing import Any, Literal
from urllib.parse import quote, urlencode

from emulator.api import PREFIX
from emulator.cli.running import Emulator, fail

_ANSWER_SECONDS = 120


def ask(
    emulator: Emulator,
    path: str,
    query: Iterable[tuple[str, object]] = (),
    *,
    method: Literal["GET", "POST"] = "GET",
    body: object = None,
    may_be_missing: bool = False,
) -> Any:
    """Return what the emulator answers; end the command with its sentence where it refuses, or does not answer.

    Args:
        emulator: which.
        path: behind ``/_emulator/``.
        query: names and values; those that are None are left out.
        method: of HTTP.
        body: sent as JSON.
        may_be_missing: return None where there is nothing of the kind, or nothing that can be read.
    """
    import urllib3

    url = f"{emulator.record.endpoint_url}{PREFIX}{path}"
    if text := urlencode([(name, value) for name, value in query if value is not None]):
        url = f"{url}?{text}"
    sent = None if body is None else json.dumps(body).encode()
    try:
        answer = urllib3.PoolManager(ca_certs=emulator.record.ca_bundle).request(
            method, url, body=sent, headers=emulator.record.headers, timeout=_ANSWER_SECONDS, retries=False
        )
        found = json.loads(answer.data)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        fail(f"The emulator at {emulator.record.endpoint_url} does not answer: {error}")
    if may_be_missing and answer.status in (404, 422):
        return None
    if answer.status >= 400:
        fail(str(found.get("error", f"The emulator answered {answer.status}.")))
    return found


def locate_job(region: str, name: str) -> str:
    """Return a job's path in the API."""
    return f"jobs/{quote(region, safe='')}/{quote(name, safe='')}"
