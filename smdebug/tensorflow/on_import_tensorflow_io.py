"""Exit of a script that imports tensorflow_io: without destructors that abort it.

tensorflow-io 0.35 to 0.37 destroys its AWS client after the client's log when the process exits: what has
opened a path of S3 may end with "pure virtual method called" and exit code -6, after it has done all its work.
"""

import ctypes
import sys
from pathlib import Path

from smdebug.absent_modules import SCRIPT_PACKAGES
from smdebug.environment import is_switched_on


def install() -> None:
    """Let the process exit with its own code before the destructors of libraries that are loaded now.

    Python's own exit is over by then: buffers are flushed, and functions of ``atexit`` have run. Only glibc passes
    the exit code to functions at exit; elsewhere, nothing changes.
    """
    package = sys.modules["tensorflow_io"]
    if not is_switched_on() or SCRIPT_PACKAGES in Path(str(package.__file__)).parents:
        return  # the substitute has no library
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):
        libc.on_exit(ctypes.cast(libc["_exit"], ctypes.c_void_p), None)
