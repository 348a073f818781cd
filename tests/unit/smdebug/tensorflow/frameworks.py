"""Keras and TensorFlow, imported when a test first uses them.

Each worker collects all tests, and few of them run those of TensorFlow, whose import takes seconds of processor time.
"""

import gc
import os
from functools import cache
from importlib import import_module
from operator import attrgetter
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["keras", "layers", "load_frameworks", "optimizers", "tf", "v1"]


@cache
def load_frameworks() -> None:
    """Import both, with two logical CPUs for strategies with replicas."""
    # TensorFlow reads it when it is imported: it says what the processor can do on every start.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    # Nearly all that the import makes stays: collections of garbage, which Keras asks for often, are to pass it over.
    gc.disable()
    try:
        import_module("keras")
        config = import_module("tensorflow").config
        # Only possible before the first tensor of the process is made.
        cpu = config.list_physical_devices("CPU")[0]
        config.set_logical_device_configuration(cpu, [config.LogicalDeviceConfiguration()] * 2)
        gc.freeze()
    finally:
        gc.enable()


class _Deferred(ModuleType):
    """A module, or a part of one, that is imported by the first look at a public name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            # pytest looks for its own marks at all that a test file has.
            raise AttributeError(name)
        load_frameworks()
        module, _, part = self.__name__.partition(".")
        found = import_module(module)
        return getattr(attrgetter(part)(found) if part else found, name)


if TYPE_CHECKING:
    import keras
    import tensorflow as tf

    layers, optimizers, v1 = keras.layers, keras.optimizers, tf.compat.v1
else:
    keras, layers, optimizers = map(_Deferred, ("keras", "keras.layers", "keras.optimizers"))
    tf, v1 = map(_Deferred, ("tensorflow", "tensorflow.compat.v1"))
