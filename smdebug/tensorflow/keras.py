"""The Keras hook: a callback, chosen by Keras' backend."""

from typing import TYPE_CHECKING

from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.tensorflow.collection import Collection, CollectionKeys, CollectionManager
from smdebug.tensorflow.keras_in_use import IS_ON_TENSORFLOW

if TYPE_CHECKING or IS_ON_TENSORFLOW:
    from smdebug.tensorflow.keras_on_tensorflow import KerasHook
else:
    from smdebug.tensorflow.keras_on_others import KerasHook

__all__ = ["Collection", "CollectionKeys", "CollectionManager", "KerasHook"]


class UnattendedKerasHook(UnattendedHook, KerasHook):
    """A hook created without script changes."""
