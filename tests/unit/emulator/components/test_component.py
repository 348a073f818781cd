"""Components start in their order and stop in the reverse one, whatever fails."""

import logging
from collections.abc import Callable

import pytest

from emulator.components.component import Component, ComponentList
from emulator.exceptions import StartupError

Heard = list[str]


class Recorded(Component):
    """Writes down its start and its stop; fails where it is asked to."""

    def __init__(
        self, label: str, heard: Heard, *needs: Component, start: Callable[[], None] = lambda: None, stops: bool = True
    ) -> None:
        super().__init__(*needs)
        self._label, self._heard, self._start, self._stops = label, heard, start, stops

    @property
    def name(self) -> str:
        return self._label

    def start(self) -> None:
        self._heard.append(f"start {self._label}")
        self.closers.callback(self._heard.append, f"stop {self._label}")
        self._start()

    def stop(self) -> None:
        super().stop()
        if not self._stops:
            raise OSError("it hangs")


def build_list(*components: Component) -> ComponentList:
    built = ComponentList()
    for each in components:
        assert built.add(each) is each
    return built


def fail() -> None:
    raise StartupError("The port is taken.")


def test_components_stop_in_the_reverse_order_of_their_start() -> None:
    heard: Heard = []
    first = Recorded("first", heard)
    second = Recorded("second", heard, first)
    components = build_list(first, second)
    assert heard == []
    components.start()
    components.stop()
    components.stop()
    assert heard == ["start first", "start second", "stop second", "stop first"]


def test_a_missing_dependency_is_an_error_of_the_list() -> None:
    heard: Heard = []
    first = Recorded("first", heard)
    second = Recorded("second", heard, first)
    with pytest.raises(ValueError, match="second needs first before it"):
        build_list(second)
    with pytest.raises(ValueError, match="second needs first before it"):
        build_list(second, first)
    with pytest.raises(ValueError, match="first is listed twice"):
        build_list(first, first)
    assert heard == []


def test_a_failed_start_stops_what_was_started() -> None:
    heard: Heard = []
    first = Recorded("first", heard)
    second = Recorded("second", heard, first, start=fail)
    third = Recorded("third", heard, second)
    with pytest.raises(StartupError, match="The port is taken"):
        build_list(first, second, third).start()
    assert heard == ["start first", "start second", "stop second", "stop first"]


def test_one_that_cannot_be_stopped_does_not_keep_the_others(caplog: pytest.LogCaptureFixture) -> None:
    heard: Heard = []
    first = Recorded("first", heard)
    second = Recorded("second", heard, first, stops=False)
    third = Recorded("third", heard, second, start=fail, stops=False)
    with caplog.at_level(logging.ERROR), pytest.raises(StartupError, match="The port is taken"):
        build_list(first, second, third).start()
    assert heard[-3:] == ["stop third", "stop second", "stop first"]
    assert [record.message for record in caplog.records] == [
        "third could not be stopped",
        "second could not be stopped",
    ]
    assert "it hangs" in caplog.text
