"""Selection of the log streams that FilterLogEvents searches."""

import json
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced


def select_searched_streams() -> AbstractContextManager[None]:
    """Make moto's FilterLogEvents obey the parameters that select streams, some of which it ignores."""
    from moto.logs.responses import LogsResponse

    return replaced(LogsResponse, filter_log_events=_filter_log_events)


def _filter_log_events(response: Any) -> str:
    from moto.logs.exceptions import ResourceNotFoundException

    ask, backend = response._get_param, response.logs_backend  # noqa: SLF001 - how moto's own methods read a request
    group_name = _find_group_name(ask("logGroupName"), ask("logGroupIdentifier"))
    if group_name not in backend.groups:
        raise ResourceNotFoundException
    names = _select_streams(backend.groups[group_name].streams, ask("logStreamNames"), ask("logStreamNamePrefix"))
    if names is not None and not names:
        # moto takes an empty list for all streams.
        return json.dumps({"events": [], "searchedLogStreams": []})
    events, next_token, searched = backend.filter_log_events(
        group_name,
        names or [],
        ask("startTime"),
        ask("endTime"),
        ask("limit"),
        ask("nextToken"),
        ask("filterPattern"),
        bool(ask("interleaved")),
    )
    return json.dumps({"events": events, "nextToken": next_token, "searchedLogStreams": searched})


def _find_group_name(name: str | None, identifier: str | None) -> str:
    """Return the name of a request's log group, which is given by name, or by name or ARN as identifier."""
    from moto.logs.exceptions import InvalidParameterException

    if bool(name) == bool(identifier):
        raise InvalidParameterException("FilterLogEvents: give either logGroupName or logGroupIdentifier.")
    if name:
        return name
    _, is_arn, rest = str(identifier).partition(":log-group:")
    return rest.removesuffix(":*") if is_arn else str(identifier)


def _select_streams(streams: Collection[str], names: Sequence[str] | None, prefix: str | None) -> list[str] | None:
    """Return the names of the streams to search; None for all."""
    from moto.logs.exceptions import InvalidParameterException, ResourceNotFoundException

    if names and prefix:
        raise InvalidParameterException("FilterLogEvents: give either logStreamNames or logStreamNamePrefix, not both.")
    if prefix:
        return [name for name in streams if name.startswith(prefix)]
    if any(name not in streams for name in names or ()):
        raise ResourceNotFoundException("The specified log stream does not exist.")
    return list(names) if names else None
