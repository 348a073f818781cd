"""Capture of unmodified scripts with `tf.GradientTape` or monitored sessions.

A script that is given a path of S3 gets a file system for it, too.
"""

import sys
from importlib.util import find_spec

from smdebug.environment import is_switched_on
from smdebug.logger import get_logger


def install() -> None:
    """Start to watch the tapes and sessions of this process, unless USE_SMDEBUG turns smdebug off.

    A script that is given a path of S3, as the SDK gives each one a `--model_dir`, can open it then.
    """
    if is_switched_on():
        import tensorflow as tf

        from smdebug.tensorflow.untouched.zero_script_change import watch_tapes
        from smdebug.tensorflow.untouched.zero_script_sessions import watch_sessions
        from smdebug.tracing.outer_profile import profile_until_first_step

        profile_until_first_step()
        watch_tapes(tf.GradientTape)
        train = tf.compat.v1.train
        # MonitoredTrainingSession is a function that creates a MonitoredSession.
        watch_sessions(train.MonitoredSession.__mro__[1], train.Optimizer)
        if any(argument.startswith("s3://") for argument in sys.argv) and find_spec("tensorflow_io") is None:
            _open_paths_of_s3()


def _open_paths_of_s3() -> None:
    try:
        import smdebug.script_packages.tensorflow_io  # noqa: F401 - it registers itself
    except ImportError as error:
        get_logger().warning("%s", error)
