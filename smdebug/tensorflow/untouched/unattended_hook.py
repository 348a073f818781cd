"""The hooks that no script's author made: apart from their classes' own, since they import Keras and TensorFlow."""

from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.tensorflow.keras import KerasHook
from smdebug.tensorflow.session import SessionHook


class UnattendedKerasHook(UnattendedHook, KerasHook):
    """A Keras hook whose configuration's mistakes end no training."""


class UnattendedSessionHook(UnattendedHook, SessionHook):
    """A session hook whose configuration's mistakes end no training."""
