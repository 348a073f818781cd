"""Indexed listings of large buckets.

For each page, moto examines every key of a bucket. Here, an index finds a page's keys.

The answers are moto's own: it gets only the keys that can be on the page. A training job of 100,000 steps has 200,000
keys, and is listed a thousand keys at a time.
"""

import functools
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from xml.sax.saxutils import escape

from moto.s3.models import FakeDeleteMarker
from moto.s3.utils import _VersionedKeyStore


class OrderedKeys(_VersionedKeyStore):
    """The keys of a bucket. From the first listing on, their names are kept in order."""

    _names: list[str] | None = None

    @property
    def names(self) -> list[str]:
        """The names in order. Callers must not change the list."""
        if self._names is None or len(self._names) != len(self):
            self._names = sorted(self)
        return self._names

    def __setitem__(self, key: str, value: Any) -> None:
        self._note(key)
        super().__setitem__(key, value)

    def setlist(self, key: Any, list_: Any) -> None:
        """Set a key's versions, as moto's method does."""
        self._note(key)
        super().setlist(key, list_)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._forget(key)

    def pop(self, key: str) -> None:  # type: ignore[override]  # moto's gives nothing back
        """Remove a key, as moto's method does."""
        super().pop(key)
        self._forget(key)

    def clear(self) -> None:
        """Remove all keys."""
        super().clear()
        self._names = None

    def _note(self, key: str) -> None:
        if self._names is not None and key not in self:
            insort(self._names, key)

    def _forget(self, key: str) -> None:
        if self._names is not None and self._names[(at := bisect_left(self._names, key)) : at + 1] == [key]:
            del self._names[at]


def choose_keys(bucket: Any, prefix: str, delimiter: str, after: str, most: int) -> Any:
    """Return a substitute for a bucket that holds only the keys from which moto builds one page of a listing.

    Args:
        bucket: moto's bucket.
        prefix: of the keys.
        delimiter: keys that are equal up to the first delimiter after the prefix are listed once, cut after it.
        after: the page starts after this key or common prefix.
        most: the size of a page. One more key is included, so that moto sees that there are more.
    """
    if type(bucket.keys) is _VersionedKeyStore:
        bucket.keys.__class__ = OrderedKeys
    names = bucket.keys.names
    at = max(bisect_left(names, prefix), bisect_right(names, after) if after else 0)
    chosen: dict[str, Any] = {}
    count = 0
    while at < len(names) and count <= most and (name := names[at]).startswith(prefix):
        head, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else (name, "", "")
        shortened = f"{prefix}{head}{found}"
        chosen[name] = key = bucket.keys[name]
        if found:
            count += shortened > after
            # All keys with this common prefix are listed with it.
            at = bisect_right(names, False, lo=at, key=lambda each: not each.startswith(shortened))  # noqa: FBT003
        else:
            count += not isinstance(key, FakeDeleteMarker)
            at += 1
    return SimpleNamespace(name=bucket.name, keys=chosen)


def writing_contents(serialized: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``serialized`` of moto's responses, so that the objects of a listing are written without the service model.

    moto finds each member of each object in the service's model, which takes 0.2 s for a thousand objects.
    """

    @functools.wraps(serialized)
    def serialize(response: Any, action_result: Any) -> Any:
        result = action_result.result
        contents = result.get("Contents") if isinstance(result, dict) else None
        if not contents:
            return serialized(response, action_result)
        result["Contents"] = []
        status, headers, body = serialized(response, action_result)
        before, end, after = body.rpartition("</")
        return status, headers, f"{before}{''.join(map(_write_object, contents))}{end}{after}"

    return serialize


def _write_object(content: dict[str, Any]) -> str:
    return f"<Contents>{''.join(_write_member(name, value) for name, value in content.items())}</Contents>"


def _write_member(name: str, value: Any) -> str:
    if isinstance(value, list):
        return "".join(_write_member(name, each) for each in value)
    if isinstance(value, dict):
        return f"<{name}>{''.join(_write_member(*member) for member in value.items())}</{name}>"
    return f"<{name}>{escape(str(value))}</{name}>"
