"""Events to deliver, messages that were sent, and what became of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, func, or_, select

from emulator.jobs.store import tables
from emulator.jobs.store.sent_messages import SentMessage
from emulator.jobs.store.transaction import KEPT_MESSAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from contextlib import AbstractContextManager

    from sqlalchemy import Engine

    from emulator.jobs.store.transaction import StoreTransaction

_DELIVERED = delete(tables.outbox).where(tables.outbox.c.event_id == bindparam("of_event"))


class MessageStore:
    """Reads and writes the messages of a store. Thread safe."""

    def __init__(
        self,
        engine: Engine,
        write_lock: AbstractContextManager[Any],
        transaction: Callable[[], AbstractContextManager[StoreTransaction]],
    ) -> None:
        self._engine = engine
        self._write_lock = write_lock
        self._transaction = transaction

    def list_outbox(self) -> list[tuple[str, str, dict[str, Any]]]:
        """Undelivered events, oldest first: id, region, event."""
        statement = select(tables.outbox).order_by(tables.outbox.c.sequence)
        with self._engine.connect() as connection:
            return [(row.event_id, row.region, row.event) for row in connection.execute(statement)]

    def add_sent(self, service: str, region: str, content: Mapping[str, Any], time_ms: int) -> None:
        """Keep what was sent, for ``smdebug-emulator events``."""
        with self._transaction() as transaction:
            transaction.add_sent(service, region, content, time_ms)

    def list_sent(
        self, after: int = 0, limit: int = KEPT_MESSAGES, names: Collection[str] | None = None
    ) -> list[SentMessage]:
        """List what was sent, oldest first: the newest so many.

        Args:
            after: only messages of a higher sequence number.
            limit: how many.
            names: only events of jobs of these names.
        """
        table = tables.sent_messages
        statement = select(table).where(table.c.sequence > after).order_by(table.c.sequence.desc()).limit(limit)
        if names is not None:
            members = ("TrainingJobName", "ProcessingJobName")
            found = (func.json_extract(table.c.content, f"$.detail.{member}").in_(names) for member in members)
            statement = statement.where(or_(*found))
        with self._engine.connect() as connection:
            rows = connection.execute(statement).all()
        return [SentMessage(row.sequence, row.time_ms, row.service, row.region, row.content) for row in reversed(rows)]

    def get_last_sent(self) -> int:
        """Return the sequence number of what was sent last; 0 before anything was."""
        with self._engine.connect() as connection:
            return connection.execute(select(func.max(tables.sent_messages.c.sequence))).scalar() or 0

    def add_outcome(self, event_id: str, outcome: Mapping[str, Any], time_ms: int) -> None:
        """Keep what became of an event at a target, among the newest KEPT_MESSAGES."""
        row = {"event_id": event_id, "outcome": outcome, "time_ms": time_ms}
        with self._transaction() as transaction:
            transaction.add_kept(tables.deliveries, row)

    def list_outcomes(self, event_ids: Collection[str]) -> dict[str, list[dict[str, Any]]]:
        """Return what became of events at their targets, by the events' ids, with the time of each."""
        table = tables.deliveries
        found: dict[str, list[dict[str, Any]]] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(
                select(table).where(table.c.event_id.in_(list(event_ids))).order_by(table.c.sequence)
            ):
                found.setdefault(row.event_id, []).append({**row.outcome, "timeMs": row.time_ms})
        return found

    def delete_from_outbox(self, event_id: str) -> None:
        """Forget an event that was delivered."""
        with self._write_lock, self._engine.begin() as connection:
            connection.execute(_DELIVERED, {"of_event": event_id})
