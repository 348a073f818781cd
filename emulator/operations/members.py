"""Declared use of request members, read by ``docs_site.coverage``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

H = TypeVar("H", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class Members:
    """What an operation does with the members of its requests; a path stands for all that is below it.

    Attributes:
        acts_on: paths of the members that it acts on; None for all.
        refuses: the reasons by the paths of the members that it refuses.
    """

    acts_on: frozenset[str] | None = None
    refuses: Mapping[str, str] = field(default_factory=dict)


_declared: dict[Callable[..., Any], Members] = {}


def declare_members(
    *, acts_on: frozenset[str] | None = None, refuses: Mapping[str, str] | None = None
) -> Callable[[H], H]:
    """Declare the use of an operation's members; see ``Members``. The operation itself is not changed."""

    def declare(operation: H) -> H:
        _declared[operation] = Members(acts_on, refuses or {})
        return operation

    return declare


def find_members(operation: Callable[..., Any]) -> Members:
    """Find what an operation declares; one that declares nothing acts on every member and refuses none."""
    return _declared.get(operation, Members())
