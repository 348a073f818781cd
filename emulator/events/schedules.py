"""Scheduled EventBridge rules and EventBridge Scheduler, fired when due."""

import logging
import re
import threading
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from emulator.events.publisher import Publisher
from emulator.exceptions import ScheduleError
from emulator.moto_services.eventbridge.rules import Target
from emulator.moto_services.eventbridge.scheduler import (
    capture_scheduler,
    delete_completed,
    find_next_moment,
    list_scheduler_schedules,
)
from emulator.moto_services.eventbridge.schedules import Schedule, capture_schedules, list_schedules

logger = logging.getLogger(__name__)

# After the machine was suspended, missed schedules are noticed within this time.
_MAX_PAUSE_SECONDS = 60.0
_ATTRIBUTE = re.compile(r"<aws\.scheduler\.(schedule-arn|scheduled-time|execution-id|attempt-number)>")


class Schedules:
    """Sends "Scheduled Event" when a rule is due, in a thread that sleeps while no rule has a schedule.

    Attributes:
        due: the next due time of each rule, by its ARN and its times; None if it is never due again.
    """

    def __init__(self, publisher: Publisher, read_clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """Start the thread. The intervals of ``rate`` expressions start now or when a rule is put.

        Args:
            publisher: sends the events. It must be closed after this object.
            read_clock: returns the current time.
        """
        self._publisher = publisher
        self._read_clock = read_clock
        self.due: dict[tuple[str, str], datetime | None] = {}
        self._woken = threading.Event()
        self._woken.set()  # the previous process may have left rules
        self._closing = False
        self._captures = ExitStack()
        self._captures.enter_context(capture_schedules(self._woken.set))
        self._captures.enter_context(capture_scheduler(self._woken.set))
        self._thread = threading.Thread(target=self._run, name="schedules", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread. Idempotent."""
        self._captures.close()
        self._closing = True
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        pause: float | None = None
        while True:
            self._woken.wait(pause)
            self._woken.clear()
            if self._closing:
                return
            try:
                pause = self._fire_due()
            except Exception:  # the thread must continue for the other rules
                logger.exception("The schedules could not be checked")
                pause = _MAX_PAUSE_SECONDS

    def _fire_due(self) -> float | None:
        """Send the events that are due and return the seconds until the next check; None without schedules."""
        now, due = self._read_clock(), {}
        for schedule in (*list_schedules(), *list_scheduler_schedules()):
            key = (schedule.rule_arn, f"{schedule.expression} {schedule.timezone} {schedule.start} {schedule.end}")
            try:
                moment = self.due[key] if key in self.due else find_next_moment(schedule, now)
            except ScheduleError as error:  # stored by an older version, which did not validate it
                logger.error("%s is never due: %s", schedule.rule_arn, error)  # noqa: TRY400 - nothing more to say
                moment = None
            if moment is not None and moment <= now:
                self._publisher.send(fill_inputs(schedule, moment), build_event(schedule, moment))
                moment = find_next_moment(schedule, moment)
                if moment is not None and moment <= now:  # several missed events are sent once
                    moment = find_next_moment(schedule, now)
                if moment is None and schedule.is_deleted_at_end:
                    delete_completed(schedule)
                    continue
            due[key] = moment
        self.due = due
        moments = [moment for moment in due.values() if moment is not None]
        return min(_MAX_PAUSE_SECONDS, max(0.0, (min(moments) - now).total_seconds())) if moments else None


def fill_inputs(schedule: Schedule, moment: datetime) -> list[Target]:
    """Return the targets of a schedule, with the context attributes in their Input replaced.

    Rules of EventBridge have none.
    """
    if schedule.source != "aws.scheduler":
        return list(schedule.targets)
    values = {
        "schedule-arn": schedule.rule_arn,
        "scheduled-time": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        "execution-id": str(uuid.uuid4()),
        "attempt-number": "1",
    }

    def fill(target: Target) -> Target:
        if (text := target.parameters.get("Input")) is None:
            return target
        text = _ATTRIBUTE.sub(lambda found: values[found[1]], str(text))
        return replace(target, parameters={**target.parameters, "Input": text})

    return [fill(target) for target in schedule.targets]


def build_event(schedule: Schedule, moment: datetime) -> dict[str, Any]:
    """Build the event for a rule that is due at ``moment``."""
    return {
        "version": "0",
        "id": str(uuid.uuid4()),
        "detail-type": "Scheduled Event",
        "source": schedule.source,
        "account": schedule.account,
        "time": f"{moment:%Y-%m-%dT%H:%M:%SZ}",
        "region": schedule.region,
        "resources": [schedule.rule_arn],
        "detail": {},
    }
