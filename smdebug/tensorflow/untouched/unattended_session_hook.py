"""The automatically created session hook.

It has a separate module, because it imports TensorFlow.
"""

from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.tensorflow.session import SessionHook


class UnattendedSessionHook(UnattendedHook, SessionHook):
    """A session hook whose configuration errors do not stop the training."""
