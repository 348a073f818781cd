"""Steps of the installed Keras: the one choice between Keras 2 and Keras 3."""

from importlib import import_module
from typing import Any

from smdebug.tensorflow.keras_in_use import IS_KERAS_3

keras_steps: Any = import_module(f"smdebug.tensorflow.steps.keras_{3 if IS_KERAS_3 else 2}_steps")
