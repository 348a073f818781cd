"""Tests that moto's unused objects are freed."""

import gc
import weakref

from moto.sqs.models import Message

from emulator.moto_services.store import untracked


def test_a_message_that_nobody_holds_is_gone_and_moto_is_as_before_afterwards() -> None:
    gc.freeze()  # the collection looks at what comes now
    with untracked():
        message = Message("id", "body")
        assert message.body == "body"
        gone = weakref.ref(message)
        del message
        gc.collect()
        assert gone() is None
    tracked = len(Message.instances_tracked)  # type: ignore[attr-defined]
    kept = Message("id", "body")
    assert Message.instances_tracked[tracked:] == [kept]  # type: ignore[attr-defined]
