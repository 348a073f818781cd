"""The Keras version behind `tf.keras`.

By default, this is the package keras: Keras 2 before TensorFlow 2.16, and Keras 3 since then. If TF_USE_LEGACY_KERAS is
set, a newer TensorFlow uses Keras 2 from the package tf_keras.
"""

import os
from importlib.util import find_spec

import keras

if os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true") and find_spec("tf_keras") is not None:
    import tf_keras as keras

IS_KERAS_3 = int(keras.__version__.partition(".")[0]) >= 3
IS_ON_TENSORFLOW = keras.backend.backend() == "tensorflow"

__all__ = ["IS_KERAS_3", "IS_ON_TENSORFLOW", "keras"]
