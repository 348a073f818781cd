"""The session hook that no script's author made: apart from its class's own, since it imports TensorFlow."""

from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.tensorflow.session import SessionHook


class UnattendedSessionHook(UnattendedHook, SessionHook):
    """A session hook whose configuration's mistakes end no training."""
