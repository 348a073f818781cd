"""The hook that no script's author made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.core.logger import get_logger
from smdebug.tensorflow.keras import KerasHook

if TYPE_CHECKING:
    from smdebug.core.collection import Collection


class UnattendedHook(KerasHook):
    """A Keras hook that never raises."""

    def _refuse_collection(self, collection: Collection) -> None:
        get_logger().error(
            "Not saved: collection %s of the job's configuration. It has no include_regex, so it selects nothing.",
            collection.name,
        )
