"""The Keras hook that no script's author made: apart from its class's own, since it imports Keras."""

from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.tensorflow.keras import KerasHook


class UnattendedKerasHook(UnattendedHook, KerasHook):
    """A Keras hook whose configuration's mistakes end no training."""
