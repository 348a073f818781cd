"""The hooks that no script's author made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.logger import get_logger
from smdebug.tensorflow.keras import KerasHook
from smdebug.tensorflow.session import SessionHook
from smdebug.tensorflow.tensorflow_hook import TensorflowHook

if TYPE_CHECKING:
    from smdebug.config.collection import Collection


class _NeverRaises(TensorflowHook):
    """A hook of a job's config, whose mistakes do not end a training."""

    def _refuse_collection(self, collection: Collection) -> None:
        get_logger().error(
            "Not saved: collection %s of the job's configuration. It has no include_regex, so it selects nothing.",
            collection.name,
        )


class UnattendedHook(_NeverRaises, KerasHook):
    """A Keras hook that never raises."""


class UnattendedSessionHook(_NeverRaises, SessionHook):
    """A session hook that never raises."""
