"""Keras step functions that also return captured tensors.

Keras calls `model.train_function` (or `test_function`, or `predict_function`) once per batch. A step that saves nothing
runs the unchanged function that Keras has compiled. For a step that is due, another function replaces it for one call.
This function runs the same `train_step` on the same data, compiled in the same way, so the model is updated exactly
once.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar, cast

import tensorflow as tf

from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.steps.keras_steps import keras_steps
from smdebug.tensorflow.steps.loop_functions import FUNCTIONS
from smdebug.tensorflow.steps.model_names import ModelNames
from smdebug.tensorflow.steps.step_watch import StepWatch, marked_passes
from smdebug.tensorflow.steps.taps import Collector, find_tapped, tapped_classes
from smdebug.tensorflow.steps.wants import Wants

Values = dict[str, Any]
_Function = TypeVar("_Function", bound="Callable[..., Any]")


class _Built(NamedTuple):
    original: Any
    function: Callable[[Any], Any]


class StepFunctions:
    """Step functions of one model that also return captured tensors; each is built when it is first needed."""

    def __init__(
        self, names: ModelNames, say: Callable[[str, Exception], None], watch: StepWatch | None = None
    ) -> None:
        """Initialize; `say` reports the loss of a value, and `watch` receives the times of traced steps."""
        self._names = names
        self._say = say
        self._watch = watch
        # By mode and wanted tensors; None for a function that only measures times.
        self._built: dict[tuple[ModeKeys, Wants | None], _Built] = {}

    def get(self, mode: ModeKeys, wants: Wants, original: Any) -> Callable[[Any], tuple[Any, Values]]:
        """Return a function that does the same as Keras' `original`, and returns its result and the wanted values."""
        if wants.is_empty:
            return lambda data: (original(data), {})
        return self._get_built(mode, wants, original, lambda: self._build(mode, wants))

    def get_split(self, mode: ModeKeys, original: Any) -> Callable[[Any], Any]:
        """Return a function that does the same as Keras' `original`, and traces the waiting for data and the passes."""
        return self._get_built(mode, None, original, lambda: self._build_split(mode))

    def _get_built(
        self, mode: ModeKeys, wants: Wants | None, original: Any, build: Callable[[], Callable[[Any], Any]]
    ) -> Callable[[Any], Any]:
        found = self._built.get((mode, wants))
        # Keras creates a new function when a model is compiled again, with another optimizer, other losses or metrics.
        if found is None or found.original is not original:
            found = self._built[mode, wants] = _Built(original, build())
            if self._watch is not None and self._watch.tracer is not None:
                # TensorFlow compiles the function at its first call, which belongs to this step.
                self._watch.tracer.note_compilation()
        return found.function

    def _build_split(self, mode: ModeKeys) -> Callable[[Any], Any]:
        model, watch = self._names.model, self._watch
        assert watch is not None
        strategy = model.distribute_strategy
        replicas = strategy.num_replicas_in_sync
        # Several replicas have no common time, and code compiled by XLA cannot read the time.
        has_marks = mode == ModeKeys.TRAIN and replicas == 1 and not keras_steps.is_compiled_by_xla(model)

        @_as_it_is
        def step(data: Any) -> tuple[Any, Values]:
            watched: AbstractContextManager[Values] = marked_passes() if has_marks else nullcontext({})
            with watched as marks:
                result = keras_steps.run_step(model, FUNCTIONS[mode][1], data)
            return result, dict(marks)

        @_as_it_is
        def run(data: Any) -> tuple[Any, Values]:
            result, marks = strategy.run(step, args=(data,))
            return keras_steps.reduce_result(model, mode, result) if replicas > 1 else result, marks

        function = self._compile(run)

        def run_and_show(batch: Any) -> tuple[Any, Values]:
            began = time.time()
            result, marks = function(batch)
            watch.show_passes(model.name, began, marks)
            return result, {}

        return lambda data: self._run_steps(run_and_show, mode, data)[0]

    def _compile(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Compile a function in the way Keras compiles its own."""
        model = self._names.model
        if model.run_eagerly:
            return run
        compiled: Callable[..., Any] = tf.function(
            run, reduce_retracing=True, jit_compile=keras_steps.is_compiled_by_xla(model)
        )
        return compiled

    def _build(self, mode: ModeKeys, wants: Wants) -> Callable[[Any], tuple[Any, Values]]:
        model = self._names.model
        strategy = model.distribute_strategy
        # If this Keras lacks a tapped method, the error is raised here, and not when the function runs.
        find_tapped()

        @_as_it_is
        def step(data: Any) -> tuple[Any, Values]:
            collector = Collector(self._names, wants, self._say)
            try:
                x, y, _ = keras_steps.unpack_batch(data)
                collector.add_batch("inputs", x)
                collector.add_batch("labels", y)
            except ValueError as error:
                # A custom train_step may accept data of any form.
                collector.report("inputs and labels", error)
            with collector.active():
                result = keras_steps.run_step(model, FUNCTIONS[mode][1], data)
            return result, collector.get_values()

        @_as_it_is
        def run(data: Any) -> tuple[Any, Values]:
            with tapped_classes():
                result, values = strategy.run(step, args=(data,))
            if strategy.num_replicas_in_sync > 1:
                result = keras_steps.reduce_result(model, mode, result)
                values = {name: _join(strategy, name, value) for name, value in values.items()}
            return result, values

        function = self._compile(run)
        return lambda data: self._run_steps(function, mode, data)

    def _run_steps(
        self, function: Callable[[Any], tuple[Any, Values]], mode: ModeKeys, data: Any
    ) -> tuple[Any, Values]:
        """Run the steps of one execution, and return the result and the values of the last step.

        Args:
            function: function that runs one step.
            mode: mode of the steps. In PREDICT, the result is the concatenated results of all steps.
            data: the data passed to Keras' function.

        Raises:
            StopIteration: there is no data left; Keras expects this exception.
        """
        iterator, times = keras_steps.get_batches(self._names.model, mode, data)
        result, values = function(self._fetch(iterator))
        results = [result]
        for _ in range(times - 1):
            try:
                batch = self._fetch(iterator)
            except StopIteration:
                break
            result, values = function(batch)
            results.append(result)
        if mode == ModeKeys.PREDICT and len(results) > 1:
            result = tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *results)
        return result, values

    def _fetch(self, iterator: Iterator[Any]) -> Any:
        """Return the next batch with None in place of each Optional, by which data sets represent missing data."""
        batch = next(iterator) if self._watch is None else self._watch.fetch(iterator)
        return tf.nest.map_structure(lambda part: None if isinstance(part, tf.experimental.Optional) else part, batch)


def _as_it_is(function: _Function) -> _Function:
    """Prevent AutoGraph from rewriting the Python code of a function, as Keras does for its own functions."""
    return cast("_Function", tf.autograph.experimental.do_not_convert(function))


def _join(strategy: Any, name: str, value: Any) -> Any:
    """Combine a value of all replicas: concatenate batches, and take gradients, which are already sums, from one."""
    parts = strategy.experimental_local_results(value)
    if name.startswith("gradients/") or parts[0].shape.rank == 0:
        return parts[0]
    return tf.concat(parts, axis=0)
