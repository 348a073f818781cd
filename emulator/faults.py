"""Fault injection: requested failures, delays and truncations.

A fault has a scope and kinds. In the scope ``s3``, or any other service by its signing name, ``error`` and
``truncate`` are shares of its requests, and ``delay`` is a time. The scope ``events`` covers deliveries to targets.
``lambda`` covers invocations, and also has ``timeout`` and ``throttle``. In ``jobs``, ``capacity`` is the share of
training jobs that get no instance, ``interrupt`` is the share of starts on Spot instances that are interrupted, and
``delay`` is the time from the start of training to the interruption. ``times`` limits how often faults strike.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}
_MOST_SECONDS = 600.0
_SERVICE_KINDS = frozenset({"error", "truncate"})
_KINDS = {
    "events": frozenset({"error"}),
    "lambda": frozenset({"error", "timeout", "throttle"}),
    "jobs": frozenset({"capacity", "interrupt"}),
}
OWN_SCOPES = frozenset(_KINDS)
"""The scopes that do not cover requests to a service."""


class InjectedFaultError(OSError):
    """An injected fault."""


@dataclass
class Fault:
    """The faults of one scope.

    Attributes:
        shares: the share by kind, from 0 to 1.
        delay: seconds.
        times: how many more times a fault may strike; None for no limit.
        struck: how often each kind has struck.
    """

    shares: dict[str, float]
    delay: float = 0.0
    times: int | None = None
    struck: Counter[str] = field(default_factory=Counter)

    def describe(self) -> dict[str, Any]:
        """Return the fault as the API shows it."""
        return {**self.shares, "delay": self.delay, "times": self.times, "struck": dict(self.struck)}


def parse_fault(text: str) -> tuple[str, Fault]:
    """Parse ``SCOPE:KIND=SHARE,delay=200ms,times=5``.

    Raises:
        ValueError: the text is invalid; the message names the part.
    """
    scope, _, rest = text.partition(":")
    members = [member.partition("=") for member in rest.split(",")] if rest else []
    return scope, build_fault(scope, {name.strip(): value.strip() for name, _, value in members})


def build_fault(scope: str, members: Mapping[str, Any]) -> Fault:
    """Build the faults of a scope from its members, each a number or a string.

    Raises:
        ValueError: a member is invalid; the message names it.
    """
    if scope not in _KINDS:
        _check_service(scope)
    kinds = _KINDS.get(scope, _SERVICE_KINDS)
    fault = Fault({})
    for name, value in members.items():
        if name == "delay":
            fault.delay = _parse_seconds(str(value))
        elif name == "times":
            if not str(value).isdecimal():
                raise ValueError(f"{scope}: times is {str(value)[:40]!r}: give a whole number")
            fault.times = int(value)
        elif name in kinds:
            fault.shares[name] = _parse_share(f"{scope}: {name}", value)
        else:
            raise ValueError(f"{scope}: {name[:40]!r} is not one of {', '.join(sorted(kinds | {'delay', 'times'}))}")
    if not fault.shares and not fault.delay:
        raise ValueError(
            f"no fault is given for {scope}: give {' or '.join(f'{scope}:{kind}=SHARE' for kind in sorted(kinds))}, "
            f"SHARE from 0 to 1, or {scope}:delay=TIME"
        )
    return fault


def _check_service(scope: str) -> None:
    """Raise ValueError unless a scope is the name by which requests of a service are signed."""
    from difflib import get_close_matches

    from emulator.service_model import load_signing_names  # few starts have faults

    signing_names = load_signing_names()
    if scope in signing_names.values():
        return
    if scope in signing_names:
        raise ValueError(f"requests of {scope} are signed as {signing_names[scope]}: give {signing_names[scope]}")
    near = get_close_matches(scope, {*_KINDS, *signing_names.values()}, 1)
    raise ValueError(
        f"{scope[:60]!r} is not a service, nor one of {', '.join(sorted(_KINDS))}: give "
        f"{near[0] if near else 'one of these, or a service such as s3, sagemaker or sqs'}"
    )


def _parse_share(name: str, value: Any) -> float:
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{name} is {str(value)[:40]!r}: give a share from 0 to 1")
    return share


def _parse_seconds(text: str) -> float:
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else -1.0
    if not 0 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"delay is {text[:40]!r}: give a time such as 200ms or 2s, up to 10m")
    return seconds


class Faults:
    """The active faults of this process. Thread safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_scope: dict[str, Fault] = {}
        self._random = random.Random()  # noqa: S311 -- chance, and no secret

    def set(self, faults: Mapping[str, Fault]) -> None:
        """Replace all active faults."""
        with self._lock:
            self._by_scope = dict(faults)

    @property
    def are_set(self) -> bool:
        """Whether there are active faults."""
        return bool(self._by_scope)

    def describe(self) -> dict[str, Any]:
        """Return all active faults, as the API shows them."""
        with self._lock:
            return {scope: fault.describe() for scope, fault in self._by_scope.items()}

    def strikes(self, scope: str, kind: str) -> bool:
        """Decide at random whether a fault strikes now, and count it if so."""
        if not self.are_set:
            return False
        with self._lock:
            fault = self._by_scope.get(scope)
            if fault is None or fault.times == 0 or self._random.random() >= fault.shares.get(kind, 0.0):
                return False
            fault.struck[kind] += 1
            if fault.times is not None:
                fault.times -= 1
            return True

    def find_delay(self, scope: str) -> float:
        """Return the scope's delay in seconds, 0 if there is none."""
        fault = self._by_scope.get(scope)
        return 0.0 if fault is None else fault.delay

    def wait(self, scope: str) -> None:
        """Wait for the scope's delay."""
        if delay := self.find_delay(scope):
            time.sleep(delay)

    def check(self, scope: str) -> None:
        """Wait for the scope's delay, then fail if an error strikes.

        Raises:
            InjectedFaultError: an error strikes.
        """
        self.wait(scope)
        if self.strikes(scope, "error"):
            raise InjectedFaultError(f"a fault of {scope} that was requested")


FAULTS = Faults()
"""The faults of this process; the emulator that runs in it sets them."""
