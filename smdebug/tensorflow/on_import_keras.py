"""Capture of unmodified scripts that train with Keras' own loops.

Keras makes one list of callbacks for each `fit`, and for each `evaluate` and `predict` outside of it. The job's hook is
put into that of the first `fit`, and into all that follow: a process that trains nothing leaves no trace.
"""

from smdebug.environment import is_switched_on


def install() -> None:
    """Begin to watch Keras, unless USE_SMDEBUG turns smdebug off."""
    if is_switched_on():
        # At the end of `import keras` all is there that watching takes; what the hook takes is imported with the hook.
        import keras

        from smdebug.tensorflow.untouched.zero_script_change import watch_keras

        watch_keras(keras.callbacks.CallbackList)
