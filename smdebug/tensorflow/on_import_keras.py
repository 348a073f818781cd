"""Capture of unmodified scripts that train with Keras' own loops.

Keras creates one callback list for each call of `fit`, and for each `evaluate` and `predict` outside `fit`. The job's
hook is added to the list of the first `fit`, and to all lists after it. A process that does not train creates no hook.
"""

from smdebug.environment import is_switched_on


def install() -> None:
    """Start to watch Keras, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        # Watching only needs what `import keras` has loaded. Other modules are imported when the hook is created.
        import keras

        from smdebug.tensorflow.untouched.zero_script_change import watch_keras
        from smdebug.tracing.outer_profile import profile_until_first_step

        profile_until_first_step()
        watch_keras(keras.callbacks.CallbackList)
