"""The automatically created Keras hook.

It is apart from its creator's module, since it imports Keras.
"""

from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.tensorflow.keras import KerasHook


class UnattendedKerasHook(UnattendedHook, KerasHook):
    """A Keras hook whose configuration's mistakes end no training."""
