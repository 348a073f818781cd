"""A Keras model's step as a function that also returns what is tapped in it.

Keras calls `model.train_function` (or `test_function`, or `predict_function`) once a batch. Steps with nothing due run
the very function that Keras has compiled. For a step that is due, another function takes its place for one call: it
runs the same `train_step` on the same data, compiled in the same way, so that the model is updated exactly once.
"""

from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

import tensorflow as tf

from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.steps.keras_steps import keras_steps
from smdebug.tensorflow.steps.model_names import ModelNames
from smdebug.tensorflow.steps.taps import Collector, find_tapped, tapped_classes
from smdebug.tensorflow.steps.wants import Wants

# By mode: the attribute that Keras calls, and the method that it is made of.
FUNCTIONS = {
    ModeKeys.TRAIN: ("train_function", "train_step"),
    ModeKeys.EVAL: ("test_function", "test_step"),
    ModeKeys.PREDICT: ("predict_function", "predict_step"),
}

Values = dict[str, Any]
_Function = TypeVar("_Function", bound="Callable[..., Any]")


class _Built(NamedTuple):
    original: Any
    function: Callable[[Any], tuple[Any, Values]]


class StepFunctions:
    """The functions of one model that return more than Keras' own, built when they are first needed."""

    def __init__(self, names: ModelNames, say: Callable[[str, Exception], None]) -> None:
        """Take what reports the loss of a value."""
        self._names = names
        self._say = say
        self._built: dict[tuple[ModeKeys, Wants], _Built] = {}

    def get(self, mode: ModeKeys, wants: Wants, original: Any) -> Callable[[Any], tuple[Any, Values]]:
        """Return a function that does what Keras' `original` does, and returns its result and the wanted values."""
        if wants.is_empty:
            return lambda data: (original(data), {})
        found = self._built.get((mode, wants))
        # Keras makes a new one when a model is compiled again: of another optimizer, other losses or metrics.
        if found is None or found.original is not original:
            found = self._built[mode, wants] = _Built(original, self._build(mode, wants))
        return found.function

    def _build(self, mode: ModeKeys, wants: Wants) -> Callable[[Any], tuple[Any, Values]]:
        model = self._names.model
        strategy = model.distribute_strategy
        # Whoever asks for the function hears what this Keras lacks; whoever runs it does not.
        find_tapped()

        @_as_it_is
        def step(data: Any) -> tuple[Any, Values]:
            collector = Collector(self._names, wants, self._say)
            try:
                x, y, _ = keras_steps.unpack_batch(data)
                collector.add_batch("inputs", x)
                collector.add_batch("labels", y)
            except ValueError as error:
                # A train_step of the script's own may take data of any form.
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

        if model.run_eagerly:
            function = run
        else:
            function = tf.function(run, reduce_retracing=True, jit_compile=keras_steps.is_compiled_by_xla(model))
        joins = mode == ModeKeys.PREDICT
        return lambda data: _run_steps(function, *keras_steps.get_batches(model, mode, data), joins=joins)


def _as_it_is(function: _Function) -> _Function:
    """Keep TensorFlow from rewriting the Python of a function, as Keras does for its own."""
    return cast("_Function", tf.autograph.experimental.do_not_convert(function))


def _run_steps(function: Any, iterator: Any, times: int, *, joins: bool) -> tuple[Any, Values]:
    """Run the steps of one execution; what the last one shows is what there is to save.

    Args:
        function: of one step.
        iterator: over batches.
        times: how many of them are one execution, if there are as many.
        joins: whether the results lie one behind the other, as predictions do; otherwise it is the last one.

    Raises:
        StopIteration: there is no data left, as Keras expects it.
    """
    result, values = function(_without_optionals(next(iterator)))
    results = [result]
    for data in islice(iterator, times - 1):
        result, values = function(_without_optionals(data))
        results.append(result)
    if joins and len(results) > 1:
        result = tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *results)
    return result, values


def _without_optionals(data: Any) -> Any:
    """Return a batch as steps expect it: data sets stand an Optional where there is nothing."""
    return tf.nest.map_structure(lambda part: None if isinstance(part, tf.experimental.Optional) else part, data)


def _join(strategy: Any, name: str, value: Any) -> Any:
    """Return what all replicas show together: gradients are summed already, batches lie one behind the other."""
    parts = strategy.experimental_local_results(value)
    if name.startswith("gradients/") or parts[0].shape.rank == 0:
        return parts[0]
    return tf.concat(parts, axis=0)
