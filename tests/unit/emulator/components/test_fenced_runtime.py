import inspect
from types import SimpleNamespace
from typing import Any, cast

import pytest

from container_runtime.runtime import ContainerRuntime
from emulator.components.fenced_runtime import FencedRuntime


class Recorder:
    """Notes the calls of a back end's methods."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        if not hasattr(ContainerRuntime, name):
            raise AttributeError(name)
        return lambda *arguments, **options: self.calls.append((name, *arguments, *options.values()))


@pytest.mark.parametrize(
    ("method", "waits"),
    [("start", 1), ("stop", 1), ("remove", 1), ("create_network", 1), ("remove_network", 1), ("logs", 0), ("find", 0)],
)
def test_only_what_changes_something_waits_for_the_fence(method: str, waits: int) -> None:
    inner = Recorder()
    fenced = FencedRuntime(cast("ContainerRuntime", inner), lambda: inner.calls.append(("wait",)))
    getattr(fenced, method)("id", grace_seconds=3)
    assert inner.calls == [("wait",)] * waits + [(method, "id", 3)]


@pytest.mark.parametrize("members", [{}, {"is_preparing": bool}])
def test_it_prepares_in_containers_where_the_back_end_does(members: dict[str, Any]) -> None:
    fenced = FencedRuntime(cast("ContainerRuntime", SimpleNamespace(**members)), lambda: None)
    # As isinstance looks for it from Python 3.12 on.
    assert inspect.getattr_static(fenced, "is_preparing", None) == members.get("is_preparing")
