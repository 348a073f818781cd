"""Tests of the names of TensorFlow errors that the toolkit knows."""

import inspect
from importlib import import_module

from smdebug.training_toolkit import list_tensorflow_errors


def test_the_names_are_those_of_tensorflows_classes() -> None:
    errors = import_module("tensorflow.python.framework.errors_impl")
    classes = [name for name, found in inspect.getmembers(errors) if inspect.isclass(found)]
    assert list_tensorflow_errors() == [*classes, "XlaRuntimeError"]
