"""Declared use of request members, read by ``docs_site.coverage``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

H = TypeVar("H", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class Members:
    """What an operation does with its request members; a path includes everything below it.

    Attributes:
        acts_on: paths of the members that have an effect; None for all.
        refuses: why members are refused, by path.
    """

    acts_on: frozenset[str] | None = None
    refuses: Mapping[str, str] = field(default_factory=dict)


# What a job's trial component is made of.
EXPERIMENT_MEMBERS = frozenset(
    f"ExperimentConfig.{member}" for member in ("ExperimentName", "TrialName", "TrialComponentDisplayName")
)
_declared: dict[Callable[..., Any], Members] = {}


def declare_members(
    *, acts_on: frozenset[str] | None = None, refuses: Mapping[str, str] | None = None
) -> Callable[[H], H]:
    """Declare how an operation uses its request members; see ``Members``. The operation itself is unchanged."""

    def declare(operation: H) -> H:
        _declared[operation] = Members(acts_on, refuses or {})
        return operation

    return declare


def find_members(operation: Callable[..., Any]) -> Members:
    """Return an operation's declaration; an operation without one acts on every member and refuses none."""
    return _declared.get(operation, Members())
