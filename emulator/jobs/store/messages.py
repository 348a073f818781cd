"""Events to deliver, messages that were sent, and what became of them."""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, delete, func, or_, select

from emulator.events.sent_messages import SentMessage
from emulator.jobs.store import tables
from emulator.jobs.store.transaction import KEPT_MESSAGES, StoreTransaction

_DELIVERED = delete(tables.outbox).where(tables.outbox.c.event_id == bindparam("of_event"))


class MessageStore:
    """Reads and writes the messages of a store. Thread safe."""

    def __init__(
        self,
        engine: Engine,
        changing: Callable[[], AbstractContextManager[Connection]],
        transaction: Callable[[], AbstractContextManager[StoreTransaction]],
    ) -> None:
        self._engine = engine
        self._changing = changing
        self._transaction = transaction

    def list_outbox(self) -> list[tuple[str, str, dict[str, Any]]]:
        """List the undelivered events, oldest first, as id, region and event."""
        statement = select(tables.outbox).order_by(tables.outbox.c.sequence)
        with self._engine.connect() as connection:
            return [(row.event_id, row.region, row.event) for row in connection.execute(statement)]

    def add_sent(self, service: str, region: str, content: Mapping[str, Any], time_ms: int) -> None:
        """Store a sent message, for ``smdebug-emulator events``."""
        with self._transaction() as transaction:
            transaction.add_sent(service, region, content, time_ms)

    def list_sent(
        self, after: int = 0, limit: int = KEPT_MESSAGES, names: Collection[str] | None = None
    ) -> list[SentMessage]:
        """List the newest sent messages, oldest first.

        Args:
            after: Only messages with a higher sequence number are listed.
            limit: Maximum number of messages.
            names: If given, only events of jobs with these names are listed.
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
        """Return the sequence number of the last sent message; 0 if there is none."""
        with self._engine.connect() as connection:
            return connection.execute(select(func.max(tables.sent_messages.c.sequence))).scalar() or 0

    def add_outcome(self, event_id: str, outcome: Mapping[str, Any], time_ms: int) -> None:
        """Store the result of delivering an event to a target; the newest KEPT_MESSAGES are kept."""
        row = {"event_id": event_id, "outcome": outcome, "time_ms": time_ms}
        with self._transaction() as transaction:
            transaction.add_kept(tables.deliveries, row)

    def list_outcomes(self, event_ids: Collection[str]) -> dict[str, list[dict[str, Any]]]:
        """Return the delivery results of events, each with its time, by event id."""
        table = tables.deliveries
        found: dict[str, list[dict[str, Any]]] = {}
        with self._engine.connect() as connection:
            for row in connection.execute(
                select(table).where(table.c.event_id.in_(list(event_ids))).order_by(table.c.sequence)
            ):
                found.setdefault(row.event_id, []).append({**row.outcome, "timeMs": row.time_ms})
        return found

    def delete_from_outbox(self, event_id: str) -> None:
        """Delete a delivered event."""
        with self._changing() as connection:
            connection.execute(_DELIVERED, {"of_event": event_id})
