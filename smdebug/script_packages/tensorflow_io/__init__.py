"""Substitute for tensorflow_io: a file system of TensorFlow for s3://, by boto3.

The last tensorflow-io is built for TensorFlow 2.16; later ones cannot load its plugins. This one registers functions of
Python with the same interface, so that everything in TensorFlow that opens a path has it: tf.io.gfile, checkpoints,
SavedModel, tf.data, summaries, and Keras.
"""

from .filesystem import register_s3

__version__ = "0"
__all__ = ["__version__"]

register_s3()
