"""The automatically created Keras hook.

It has a separate module, because it imports Keras.
"""

from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.tensorflow.keras import KerasHook


class UnattendedKerasHook(UnattendedHook, KerasHook):
    """A Keras hook whose configuration errors do not stop the training."""
