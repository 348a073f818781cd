"""Log lines of jobs, rules and functions, as the query of a request selects them."""

from collections.abc import Iterable, Iterator
from typing import Any

from flask import request

from emulator.api.account_services import parse_number, read_number
from emulator.moto_services.cloudwatch.logs import Log, LogGroups, LogLine
from emulator.services import Services

_MOST_LINES = 5000
# The limit of one response: a page shows no more, and a line may have 256 kB.
_MOST_LOG_BYTES = 2 * 1024**2


def find_host_streams(logs: LogGroups, group: str, job_name: str) -> Iterator[tuple[str, str]]:
    """Yield the log group and the name of each stream of a job; of one host only, where the query names it."""
    host = request.args.get("host")
    for stream in logs.list_streams(group, f"{job_name}/"):
        if not host or name_host(stream) == host:
            yield group, stream


def list_hosts(account: Services, region: str, group: str, job_name: str) -> list[str]:
    """List the hosts that have a log of a job."""
    return [name_host(stream) for stream in account.log_groups_for(region).list_streams(group, f"{job_name}/")]


def name_host(stream: str) -> str:
    """Return the host whose log a stream of a job is.

    >>> name_host("my-job/algo-1-1767225600")
    'algo-1'
    """
    return stream.rpartition("/")[2].rpartition("-")[0]


def read_logs(logs: LogGroups, found: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the log lines that the query selects, of each stream in ``found`` (log group and name).

    Without ``after``, the last lines are returned. ``after`` is the number of the first line to return, for all streams
    or as STREAM:NUMBER for one. ``before``, which is given in the same ways, returns the last lines before this number.
    ``words`` returns only the lines that contain it.
    """
    words, invocation = request.args.get("words", "").casefold(), request.args.get("requestId", "")
    most = read_number("limit", 500, _MOST_LINES)
    before, after = _read_positions("before"), _read_positions("after")
    streams = []
    for group, stream in found:
        log = logs.find(group, stream)
        # Lines may arrive while lines are chosen, so ``total`` may be lower than the number of the last returned line.
        total = len(log)
        if invocation:
            chosen = cut_invocation(log, invocation)
            if not chosen:
                continue
        else:
            chosen = choose_lines(
                log, words, most, after.get(stream, after.get("")), before.get(stream, before.get(""))
            )
        streams.append(
            {
                "stream": stream,
                "host": name_host(stream),
                "total": total,
                "lines": [{"number": at, "timeMs": line.timestamp_ms, "message": line.message} for at, line in chosen],
            }
        )
    return {"streams": streams}


def _read_positions(name: str) -> dict[str, int]:
    """Read the parameters of a name: a line's number by stream.

    The number under the empty name applies to all streams that are not named.

    Raises:
        ValidationException: a value is not a number.
    """
    found = {}
    for text in request.args.getlist(name):
        stream, _, number = text.rpartition(":")
        found[stream] = parse_number(name, number, 1 << 60)
    return found


def choose_lines(log: Log, words: str, most: int, after: int | None, before: int | None) -> list[tuple[int, LogLine]]:
    """Choose lines of a log and return each with its number, counted from 0.

    Args:
        log: the log of one stream.
        words: text that each line must contain, in lower case; an empty string matches every line.
        most: the maximum number of lines.
        after: the number of the first line to consider; None for the last lines of the log.
        before: if ``after`` is None, only lines before this number are considered.
    """
    found: list[tuple[int, LogLine]] = []
    size = 0
    for number, line in log.read_back(before) if after is None else log.read_on(after):
        if words and words not in line.message.casefold():
            continue
        size += len(line.message)
        if len(found) == most or (found and size > _MOST_LOG_BYTES):
            break
        found.append((number, line))
    return found[::-1] if after is None else found


def cut_invocation(log: Log, request_id: str) -> list[tuple[int, LogLine]]:
    """Choose the lines of one invocation of a Lambda function, from its START line to its REPORT line."""
    found: list[tuple[int, LogLine]] = []
    for number, line in log.read_on(0):
        begins = line.message.startswith("START RequestId: ")
        if (begins and found) or len(found) == _MOST_LINES:
            break
        if found or (begins and request_id in line.message):
            found.append((number, line))
    return found
