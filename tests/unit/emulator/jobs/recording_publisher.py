"""Recording substitute for EventBridge and its targets."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from emulator.events.publisher import Publisher


class RecordingPublisher(Publisher):
    """Keeps events in the order in which they were published; delivers when told."""

    def __init__(self, *, deliver: bool = True) -> None:
        self.events: list[dict[str, Any]] = []
        self.deliver = deliver

    def expect_again(self, outcomes: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Nothing was delivered to anybody."""

    def publish(self, event_id: str, region: str, event: dict[str, Any], on_delivered: Callable[[str], None]) -> None:
        assert event_id == event["id"]
        self.events.append(json.loads(json.dumps(event)))
        if self.deliver:
            on_delivered(event_id)
