"""The automatically created session hook.

It is apart from its creator's module, since it imports TensorFlow.
"""

from smdebug.capture.zero_script_change import UnattendedHook
from smdebug.tensorflow.session import SessionHook


class UnattendedSessionHook(UnattendedHook, SessionHook):
    """A session hook whose configuration's mistakes end no training."""
