"""Deliveries of events to EventBridge targets: ordered, retried, independent."""

import json
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import tenacity

from emulator.events.destinations import describe_end
from emulator.events.outcomes import DeliveryOutcome, describe_delivery
from emulator.events.targets import Delivery, find_kind, is_permitted
from emulator.exceptions import (
    InvokerClosedError,
    TargetError,
    TargetGoneError,
)
from emulator.faults import FAULTS
from emulator.lambda_functions.invocation import InvocationResult
from emulator.lambda_functions.invoker import FunctionInvoker
from emulator.moto_services.eventbridge import rules as eventbridge
from emulator.moto_services.eventbridge.rules import Target
from emulator.moto_services.functions import backend as functions

logger = logging.getLogger(__name__)

# Event buses may forward to each other in a cycle. An event is put on at most this many buses.
_MAX_BUSES = 5
# The default of a target without a RetryPolicy.
_RETRIES = 4
_MAX_AGE_SECONDS = 86_400


@dataclass(eq=False, slots=True)
class _PublishedEvent:
    """An event that is being delivered to its targets.

    Attributes:
        event_id: the publisher's identifier of the event.
        region: the region of the event bus.
        event: the complete event envelope.
        on_delivered: called with ``event_id`` when all deliveries have finished.
        targets: the targets; None if the event must still be matched against the rules.
        open: the number of unfinished deliveries. Matching the event against the rules counts as one.
    """

    event_id: str
    region: str
    event: dict[str, Any]
    on_delivered: Callable[[str], None]
    targets: list[Target] | None
    open: int = 1


class Publisher:
    """Delivers events to their targets. Thread safe.

    One thread delivers the events in the order in which they were published. Deliveries that may be slow (such as an
    SNS topic with an HTTP subscriber, or a second attempt) run in other threads. ``FunctionInvoker`` runs Lambda
    functions. For each function, it keeps the order of the events.
    """

    def __init__(
        self,
        invoker: FunctionInvoker,
        *,
        record: Callable[[DeliveryOutcome], None],
        start_pipeline: Callable[[Target, Mapping[str, Any]], None],
        replacing_in: Callable[[str, Callable[[], AbstractContextManager[None]]], AbstractContextManager[None]],
        retry_seconds: float = 0.2,
    ) -> None:
        """Start the delivery thread. It also handles the events and function invocations that moto would dispatch.

        Args:
            invoker: runs the functions. It must be closed after this object.
            record: called with the outcome of each delivery.
            start_pipeline: starts an execution of a target that is a SageMaker pipeline.
            replacing_in: replaces a part of one of moto's services, at once or from its first use on.
            retry_seconds: the wait before the second attempt. It doubles before each further attempt.
        """
        self._invoker = invoker
        self._retry_seconds = retry_seconds
        self._record = record
        self._start_pipeline = start_pipeline
        self._events: queue.SimpleQueue[_PublishedEvent | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._open = 0
        self._again: set[str] = set()
        self._reached: set[tuple[str, str, str]] = set()
        self._closing = threading.Event()
        self._slow = ThreadPoolExecutor(max_workers=4, thread_name_prefix="event-delivery")
        self._captures = ExitStack()
        self._captures.enter_context(eventbridge.capture_dispatch(self.send))
        capture = partial(functions.capture_invocations, invoker.invoke_async)
        self._captures.enter_context(replacing_in("awslambda", capture))
        invoker.tell_ends(self._take_ended)
        self._thread = threading.Thread(target=self._deliver_all, name="event-publisher", daemon=True)
        self._thread.start()

    def publish(self, event_id: str, region: str, event: dict[str, Any], on_delivered: Callable[[str], None]) -> None:
        """Put ``event`` on the default bus of its account in ``region`` and return at once.

        Args:
            event_id: the caller's identifier of the event.
            region: the region of the event bus.
            event: the complete envelope as targets receive it.
            on_delivered: called with ``event_id``, from another thread, when all targets have received the event or all
                attempts have failed. Delivery to a function finishes when the function has ended. It is not called if
                a shutdown interrupts the deliveries.
        """
        self._begin(_PublishedEvent(event_id, region, event, on_delivered, None))

    def expect_again(self, outcomes: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Announce events that will be published again after a restart. They skip the targets that already have them.

        Args:
            outcomes: the recorded outcomes so far, by the event's id.
        """
        self._again |= outcomes.keys()
        for event_id, ends in outcomes.items():
            # Events that a bus forwarded have their own outcomes.
            done = (each for each in ends if ":event-bus/" not in each["target_arn"])
            self._reached |= {(event_id, each["rule_arn"], each["target_id"]) for each in done}

    def send(self, targets: list[Target], event: dict[str, Any]) -> None:
        """Deliver ``event`` to ``targets`` without matching it against rules, and return at once."""
        if targets and not self._closing.is_set():
            self._begin(_PublishedEvent(str(event.get("id")), targets[0].region, event, _ignore, targets))

    def drain(self, timeout: float) -> bool:
        """Wait until everything published so far is delivered; False if ``timeout`` seconds passed first."""
        with self._changed:
            return self._changed.wait_for(lambda: self._open == 0, timeout)

    def close(self) -> None:
        """Stop the deliveries. Pending events are dropped, and their ``on_delivered`` is not called. Idempotent."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._captures.close()
        self._events.put(None)
        self._thread.join()
        self._slow.shutdown(cancel_futures=True)

    def _begin(self, published: _PublishedEvent) -> None:
        with self._changed:
            self._open += 1
        self._events.put(published)

    def _deliver_all(self) -> None:
        while (published := self._events.get()) is not None:
            if self._closing.is_set():
                continue
            try:
                if published.targets is None:
                    bus = (published.event["account"], published.region, "default")
                    self._warm_up(bus, published.event)
                    self._put_on_bus(published, bus, published.event, 1)
                else:
                    for target in published.targets:
                        self._hand_over(published, target, published.event, 1)
            except Exception:
                # If an event causes an error, the next one must still be delivered.
                logger.exception("The event %s could not be delivered.", published.event_id)
            self._leave(published)

    def _warm_up(self, bus: tuple[str, str, str], event: Mapping[str, Any]) -> None:
        """Start workers for the functions that a later event of this kind may invoke, e.g. once a rule has fired.

        An invocation then does not wait for the start of a worker.
        """
        for target in eventbridge.possible_targets(*bus, event):
            if target.service == "lambda":
                try:
                    self._invoker.warm(functions.get_function(target.account, target.region, target.arn))
                except Exception as error:  # noqa: BLE001 - reported when the function is actually invoked
                    logger.debug("No worker is started ahead for %s: %s", target.arn, error)

    def _put_on_bus(
        self, published: _PublishedEvent, bus: tuple[str, str, str], event: Mapping[str, Any], depth: int
    ) -> None:
        for target in eventbridge.matching_targets(*bus, event):
            self._hand_over(published, target, event, depth)

    def _hand_over(self, published: _PublishedEvent, target: Target, event: Mapping[str, Any], depth: int) -> None:
        def publish(account: str, region: str, bus: str, forwarded: Mapping[str, Any]) -> None:
            if depth < _MAX_BUSES:
                self._put_on_bus(published, (account, region, bus), forwarded, depth + 1)
            else:
                logger.warning("The event %s was forwarded by %d buses and goes no further.", event.get("id"), depth)

        if (str(event.get("id")), target.rule_arn, target.target_id) in self._reached:
            return
        delivery = Delivery(
            target,
            event,
            self._invoker,
            publish,
            self._start_pipeline,
            again=published.event_id in self._again,
            permitted=is_permitted(target),
        )
        with self._changed:
            published.open += 1
        attempts = _count_retries(target)
        try:
            if not find_kind(target).slow:
                self._attempt(published, delivery)
                return
            attempts += 1  # the first one, too, runs in another thread
        except Exception as error:  # noqa: BLE001 - logged by the attempts that follow, or by _give_up
            if attempts == 0 or isinstance(error, TargetError):
                self._give_up(published, delivery, error)
                return
            logger.info("The event %s did not reach %s yet: %s", event.get("id"), target.arn, error)
        if not self._closing.is_set():
            self._slow.submit(self._attempt_again, published, delivery, attempts)

    def _attempt(self, published: _PublishedEvent, delivery: Delivery) -> None:
        FAULTS.check("events")
        future = find_kind(delivery.target).deliver(delivery)
        if future is None:
            self._note(describe_delivery(delivery))
            self._leave(published)
        else:
            future.add_done_callback(lambda done: self._function_ended(published, delivery, done))

    def _attempt_again(self, published: _PublishedEvent, delivery: Delivery, most: int) -> None:
        """Deliver with at most ``most`` attempts, within the MaximumEventAgeInSeconds of the target's RetryPolicy."""
        seconds = delivery.target.parameters.get("RetryPolicy", {}).get("MaximumEventAgeInSeconds", _MAX_AGE_SECONDS)
        attempts = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(most)
            | tenacity.stop_after_delay(seconds)
            | tenacity.stop_when_event_set(self._closing),
            wait=tenacity.wait_exponential(self._retry_seconds, max=5.0),
            sleep=tenacity.sleep_using_event(self._closing),
            retry=tenacity.retry_if_not_exception_type(TargetError),
            reraise=True,
        )
        try:
            attempts(self._attempt, published, delivery)
        except Exception as error:  # noqa: BLE001 - logged by _give_up
            if not self._closing.is_set():
                self._give_up(published, delivery, error)

    def _give_up(self, published: _PublishedEvent, delivery: Delivery, error: Exception) -> None:
        target = delivery.target
        logger.error(
            "The event %s did not reach the target %s of the rule %s: %s",
            delivery.event.get("id"),
            target.target_id,
            target.rule_arn,
            error,
            exc_info=None if isinstance(error, (TargetError, TargetGoneError)) else error,
        )
        self._note(describe_delivery(delivery, error=str(error) or type(error).__name__))
        self._send_dead_letter(delivery, error)
        self._leave(published)

    def _note(self, outcome: DeliveryOutcome) -> None:
        try:
            self._record(outcome)
        except Exception:
            # The delivery itself continues.
            logger.exception("What became of the event %s could not be recorded.", outcome.event_id)

    def _send_dead_letter(self, delivery: Delivery, error: Exception) -> None:
        """Send an event that did not reach its target to the target's dead-letter queue, with the error's details."""
        target = delivery.target
        queue = target.parameters.get("DeadLetterConfig", {}).get("Arn")
        if queue is None:
            return
        attributes = {
            "RULE_ARN": target.rule_arn,
            "TARGET_ARN": target.arn,
            "ERROR_CODE": "NO_RESOURCE" if isinstance(error, TargetGoneError) else "INVALID_PARAMETER",
            "ERROR_MESSAGE": str(error) or type(error).__name__,
            "RETRY_ATTEMPTS": str(0 if isinstance(error, TargetError) else _count_retries(target)),
        }
        letter = replace(target, arn=queue, parameters={"MessageAttributes": attributes})
        try:
            eventbridge.deliver_to_queue(letter, json.dumps(delivery.event))
        except Exception:
            logger.exception("The event %s did not reach the dead-letter queue %s.", delivery.event.get("id"), queue)

    def _take_ended(
        self, function: functions.Function, payload: bytes, result: InvocationResult, attempts: int
    ) -> None:
        """Pass the result of an asynchronous invocation to the function's destinations."""
        self.send(*describe_end(function, payload, result, attempts))

    def _function_ended(self, published: _PublishedEvent, delivery: Delivery, future: Future[InvocationResult]) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if isinstance(error, InvokerClosedError):
            return
        if error is not None:
            logger.error("The function %s could not be invoked: %s", delivery.target.arn, error)
            self._note(describe_delivery(delivery, error=str(error) or type(error).__name__))
        else:
            self._note(describe_delivery(delivery, result=future.result()))
        self._leave(published)

    def _leave(self, published: _PublishedEvent) -> None:
        """Finish one delivery. After the last one, call ``on_delivered``."""
        with self._changed:
            published.open -= 1
            if published.open:
                return
        try:
            published.on_delivered(published.event_id)
        except Exception:
            # The event is still in the outbox and is delivered again after a restart.
            logger.exception("The delivery of the event %s could not be recorded.", published.event_id)
        with self._changed:
            self._open -= 1
            self._changed.notify_all()


def _count_retries(target: Target) -> int:
    """Return the number of retries of a delivery.

    The default is lower than EventBridge's 185 retries, which take a day.
    """
    return int(target.parameters.get("RetryPolicy", {}).get("MaximumRetryAttempts", _RETRIES))


def _ignore(event_id: str) -> None:
    """Do nothing: events that users send are not kept in the outbox."""
