"""Capture of scripts that train with Keras' own loops and know nothing of smdebug.

Keras makes one list of callbacks for each `fit`, and for each `evaluate` and `predict` outside of it. The job's hook is
put into that of the first `fit`, and into all that follow: a process that trains nothing leaves no trace.
"""

from smdebug.environment import is_switched_on
from smdebug.logger import get_logger


def install() -> None:
    """Begin to watch Keras, unless USE_SMDEBUG turns smdebug off, or Keras runs on something else than TensorFlow.

    The hook takes TensorFlow, which such a process has no use for: that it is to be loaded is for the script to say.
    """
    if not is_switched_on():
        return
    # At the end of `import keras` all is there that watching takes; what the hook takes is imported with the hook.
    import keras

    if keras.backend.backend() == "tensorflow":
        from smdebug.tensorflow.untouched.zero_script_change import watch_keras

        watch_keras(keras.callbacks.CallbackList)
    else:
        get_logger().warning(
            "Keras runs on %s: its models are not captured without a change of the script. A KerasHook among the "
            "callbacks of fit saves losses, metrics and weights.",
            keras.backend.backend(),
        )
