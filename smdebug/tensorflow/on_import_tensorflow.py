"""Capture of unmodified scripts with `tf.GradientTape` or monitored sessions."""

from smdebug.environment import is_switched_on


def install() -> None:
    """Start to watch the tapes and sessions of this process, unless USE_SMDEBUG turns smdebug off."""
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
