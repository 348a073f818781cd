"""Capture of loops with `tf.GradientTape`, in scripts that know nothing of smdebug."""

from __future__ import annotations

from smdebug.core.singleton import is_switched_on


def install() -> None:
    """Begin to watch the tapes of this process, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        import tensorflow as tf

        from smdebug.tensorflow.zero_script_change import watch_tapes

        watch_tapes(tf.GradientTape)
