"""Taps: values captured inside a Keras step while it runs or is traced.

Layers and optimizers are tapped only while a step that is due runs in Python: eagerly, or when its function is traced.
Values tapped during tracing become outputs of the traced function, so the step remains one compiled function.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import Any

import tensorflow as tf

from smdebug.exceptions import SMDebugNotImplementedError
from smdebug.tensorflow.keras_in_use import keras
from smdebug.tensorflow.steps.keras_steps import keras_steps
from smdebug.tensorflow.steps.model_names import ModelNames
from smdebug.tensorflow.steps.registered_models import RegisteredModels
from smdebug.tensorflow.steps.wants import Wants
from smdebug.tensorflow.values import is_value, to_dense


class Collector:
    """Collects the values of a step while its Python code runs or is traced."""

    def __init__(
        self, names: ModelNames | RegisteredModels, wants: Wants, say: Callable[[str, Exception], None]
    ) -> None:
        """Initialize; `say` reports the loss of a value, because an error must not reach the step."""
        self._names = names
        self._wants = wants
        self._say = say
        self._graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        self._gradients: dict[str, Any] = {}
        self._series: dict[str, list[Any]] = {}
        self._in_optimizer = False

    @contextmanager
    def active(self) -> Iterator[None]:
        """Collect from the calls of this thread inside the context."""
        outer = getattr(_active, "collector", None)
        _active.collector = self
        try:
            yield
        finally:
            _active.collector = outer

    def get_values(self) -> dict[str, tf.Tensor]:
        """Return the collected values by their names in the run."""
        values = dict(self._gradients)
        for prefix, series in self._series.items():
            if len(series) == 1:
                values[prefix] = series[0]
            else:
                values.update({f"{prefix}_{number}": value for number, value in enumerate(series)})
        return values

    def add_batch(self, name: str, structure: Any) -> None:
        """Add the inputs, labels or predictions of the step."""
        if name in self._wants.batch and name not in self._series:
            self._add_series(name, structure)

    def add_call(self, layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Add the inputs and outputs of a layer of the model."""
        if self._graph is None and not tf.executing_eagerly():
            # The values of an eager step are not in a graph. Keras calls a model in one, to make its variables.
            return
        if layer is self._names.model:
            self.add_batch("inputs", args or list(kwargs.values())[:1])
            self.add_batch("predictions", result)
            return
        if id(layer) not in self._names.layers:
            # The first batch has created the layer.
            self._names.refresh()
        name = self._names.layers.get(id(layer), "")
        if name in self._wants.layer_inputs:
            self._add_series(f"{name}/inputs", args or list(kwargs.values())[:1])
        if name in self._wants.layer_outputs:
            self._add_series(f"{name}/outputs", result)

    def add_gradients(self, optimizer: Any, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Add the gradients passed to an optimizer; with several replicas, their sum."""
        if self._in_optimizer or not self._wants.gradients:
            return
        # Keras 2 passes gradients without the scale. Keras 3 does not, and its first eager step creates the variable:
        # until then the loss is multiplied by the first scale.
        scale = getattr(optimizer, "dynamic_scale", None)
        if scale is None and hasattr(optimizer, "scale_loss"):
            # An optimizer may have a constant scale of its own.
            scale = getattr(optimizer, "initial_scale", None) or getattr(optimizer, "loss_scale_factor", None)
        found: dict[str, Any] = {}
        # The first batch may have created variables.
        self._names.refresh()
        for gradient, variable in pairs:
            name = self._names.gradients.get(id(variable), "")
            if gradient is None or name not in self._wants.gradients or not self._is_reachable(gradient):
                continue
            dense = to_dense(gradient)
            # Undo the loss scale, which keeps gradients in the range of half precision.
            found[name] = dense if scale is None else dense / tf.cast(tf.convert_to_tensor(scale), dense.dtype)
        replica = tf.distribute.get_replica_context()
        if found and replica is not None and replica.num_replicas_in_sync > 1:
            found = replica.all_reduce(tf.distribute.ReduceOp.SUM, found)
        self._gradients.update(found)

    @contextmanager
    def inside_optimizer(self) -> Iterator[None]:
        """Ignore gradients that an optimizer passes to the optimizer it wraps."""
        outer, self._in_optimizer = self._in_optimizer, True
        try:
            yield
        finally:
            self._in_optimizer = outer

    def report(self, lost: str, error: Exception) -> None:
        """Report a value that could not be collected."""
        self._say(lost, error)

    def _add_series(self, prefix: str, structure: Any) -> None:
        series = self._series.setdefault(prefix, [])
        series += [to_dense(value) for value in tf.nest.flatten(structure) if self._is_reachable(value)]
        if not series:
            del self._series[prefix]

    def _is_reachable(self, value: Any) -> bool:
        """Return whether a value can be an output of the step's function; values inside loops or branches cannot."""
        if not is_value(value):
            return False
        if self._graph is None:
            return True
        components = tf.nest.flatten(value, expand_composites=True)
        return all(getattr(component, "graph", self._graph) is self._graph for component in components)


_active = threading.local()
_lock = threading.Lock()
_users = 0


def find_owner(of: type, method: str) -> type:
    """Return the class that defines a method of a class.

    Raises:
        SMDebugNotImplementedError: the class has no such method, for example in a newer Keras.
    """
    for owner in of.__mro__:
        if method in vars(owner):
            return owner
    raise SMDebugNotImplementedError(f"{of.__name__} of Keras {keras.__version__} has no method {method}()")


@cache
def find_tapped() -> dict[tuple[type, str], Any]:
    """Return the tapped methods by class and name.

    Raises:
        SMDebugNotImplementedError: this Keras lacks one of the methods.
    """
    methods = [(keras.layers.Layer, "__call__"), *((of, keras_steps.UPDATE) for of in keras_steps.UPDATERS)]
    owners = [(find_owner(of, method), method) for of, method in methods]
    return {(owner, method): vars(owner)[method] for owner, method in owners}


@contextmanager
def tapped_classes() -> Iterator[None]:
    """Tap layers and optimizers, which then report to the collector of their thread, if it has one.

    Raises:
        SMDebugNotImplementedError: this Keras lacks a tapped method; call `find_tapped` first to check.
    """
    global _users
    tapped = find_tapped()
    with _lock:
        _users += 1
        if _users == 1:
            for (owner, method), original in tapped.items():
                tap = _tap_call if method == "__call__" else _tap_update
                setattr(owner, method, tap(original))
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for (owner, method), original in tapped.items():
                    setattr(owner, method, original)


def _tap_call(original: Any) -> Any:
    # AutoGraph does not rewrite the Python code of Keras' modules, and treats this wrapped function as one of them.
    @wraps(original)
    def __call__(layer: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands in for it
        result = original(layer, *args, **kwargs)
        collector = getattr(_active, "collector", None)
        if collector is not None:
            try:
                collector.add_call(layer, args, kwargs, result)
            except Exception as error:  # noqa: BLE001 - the step must not see it
                collector.report("inputs and outputs of a layer", error)
        return result

    return __call__


def _tap_update(original: Any) -> Any:
    @wraps(original)
    def update(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        collector = getattr(_active, "collector", None)
        if collector is None:
            return original(optimizer, *args, **kwargs)
        try:
            given = kwargs.pop(keras_steps.UPDATE_TAKES) if keras_steps.UPDATE_TAKES in kwargs else args[0]
            # The argument may be an iterator.
            args = (list(given), *args[1:])
            collector.add_gradients(optimizer, keras_steps.read_update(optimizer, *args, **kwargs))
        except Exception as error:  # noqa: BLE001 - the step must not see it
            collector.report("gradients", error)
        with collector.inside_optimizer():
            return original(optimizer, *args, **kwargs)

    return update
