"""Delivery outcomes of events, stored for display and as warnings of jobs."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from emulator.events.outcomes import read_function_name
from emulator.jobs.model.warnings import build_warning

if TYPE_CHECKING:
    from emulator.events.outcomes import DeliveryOutcome
    from emulator.jobs.accounts import AccountStores
    from emulator.jobs.store.store import JobStore


_ONLY_WARNED = ("error", "permitted", "training_job")


def record_outcome(stores: AccountStores, outcome: DeliveryOutcome) -> None:
    """Store the result of a delivery with the jobs of the event's account, and a problem as a warning of its job."""
    store = stores.find(outcome.account)
    if store is None:
        return
    shown = {name: value for name, value in asdict(outcome).items() if name not in _ONLY_WARNED}
    store.messages.add_outcome(outcome.event_id, shown, time.time_ns() // 1_000_000)
    if outcome.succeeded and outcome.permitted:
        return
    if (job := store.find_training_job(*outcome.training_job)) is None:
        return
    if not outcome.permitted:
        name = ":".join(outcome.target_arn.split(":")[6:])
        warning = build_warning("FunctionNotPermitted", name=name, rule=outcome.rule_arn)
        with store.transaction() as transaction:
            transaction.add_warnings(job.arn, [warning])
    if not outcome.succeeded:
        _warn_of_failure(store, job.arn, outcome)


def _warn_of_failure(store: JobStore, arn: str, outcome: DeliveryOutcome) -> None:
    function = read_function_name(outcome.target_arn)
    target = f"The function {function}" if function else f"The target {outcome.target_arn}"
    warning = build_warning("EventTargetFailed", name=target, said=outcome.error)
    # Each event may fail in other words: the first of them is said.
    said = (each.text for each in store.list_warnings(arn) if each.code == warning.code)
    if not any(text.startswith(f"{target} ") for text in said):
        with store.transaction() as transaction:
            transaction.add_warnings(arn, [warning])
