"""Fetchable tensors of a TensorFlow 1 graph, and the updates of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.client.session import register_session_run_conversion_functions

v1 = tf.compat.v1

# Stateful for TensorFlow, although these operations only read a variable.
_READS = frozenset({"ReadVariableOp", "VarHandleOp", "Variable", "VariableV2"})
# A sparse update takes the values of a gradient, and these values are saved.
_UPDATE = re.compile("(Resource)?(Sparse)?Apply[A-Z]")
# Limits memory use if a script creates new fetches for each run.
_MOST_RECALLED = 64
# The result is an attribute of the graph. The two objects refer to each other, and are freed together.
_KEPT_AS = "_smdebug_fetched_graph"


class NamedTensors:
    """Tensors that a session fetches as one object; the fetched value is a dictionary of arrays by name.

    A dictionary is not used for this: a session checks the type of each value in it, which takes as long as the fetch
    itself.
    """

    def __init__(self, tensors: dict[str, Any]) -> None:
        """Initialize with tensors of one graph, by the names of their values."""
        self.names = tuple(tensors)
        self.tensors = list(tensors.values())


def _expand(fetched: NamedTensors) -> tuple[list[Any], Callable[[list[Any]], dict[str, Any]]]:
    """Return the tensors, and a function that combines their values, for TensorFlow's fetch conversion."""
    return fetched.tensors, lambda values: dict(zip(fetched.names, values, strict=True))


register_session_run_conversion_functions(NamedTensors, _expand)


class FetchedGraph:
    """Finds the tensors of one graph by name, and those that a call of the session's `run` computes anyway.

    Attributes:
        trainable: names of the trainable variables.
        gradients: names of the gradients with which operations of the graph update variables.
        optimizer_variables: names of the variables that hold the state of these operations.
    """

    @classmethod
    def look_at(cls, graph: Any) -> FetchedGraph:
        """Read a graph and return the result; a finalized graph that was read before is not read again."""
        if not (graph.finalized and hasattr(graph, _KEPT_AS)):
            setattr(graph, _KEPT_AS, cls(graph))
        return cls.of(graph)

    @classmethod
    def of(cls, graph: Any) -> FetchedGraph:
        """Return the result for a graph that has been read."""
        known: FetchedGraph = getattr(graph, _KEPT_AS)
        return known

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        updates = list(find_updates(graph))
        self.gradients = [tensor.name for update in updates for tensor in update.gradients]
        kept = {name for update in updates for name in update.kept}
        with graph.as_default():
            variables = v1.global_variables() + v1.local_variables()
            self.trainable = [variable.name for variable in v1.trainable_variables()]
        self.optimizer_variables = [variable.name for variable in variables if variable.name.partition(":")[0] in kept]
        # A separate operation reads each variable; the value gets the variable's name.
        self._variables = {variable.name: variable.value() for variable in variables}
        self._computed: dict[Any, dict[str, Any]] = {}
        # By ids of the fetched objects, which are kept alive so that no other object gets their id.
        self._recalled: dict[Any, tuple[list[Any], NamedTensors]] = {}

    def recall(self, fetches: Any, circumstances: Hashable, find: Callable[[], NamedTensors]) -> NamedTensors:
        """Return the cached result of `find` for the same fetches and circumstances."""
        asked = tf.nest.flatten(fetches)
        key = (tuple(map(id, asked)), circumstances)
        found = self._recalled.get(key)
        if found is None:
            if len(self._recalled) >= _MOST_RECALLED:
                self._recalled.clear()
            found = self._recalled[key] = (asked, find())
        return found[1]

    def get_computed(self, fetches: Any, named: frozenset[str]) -> dict[str, Any]:
        """Return, by name, the tensors that can be fetched together with `fetches` without side effects.

        Args:
            fetches: what the script fetches.
            named: tensors that may be computed additionally, such as a loss of which only the gradients are fetched, if
                they need no further input and change no state.
        """
        operations = _get_operations(self._graph, fetches)
        key = (frozenset(operation.name for operation in operations), named)
        found = self._computed.get(key)
        if found is None:
            found = self._computed[key] = self._find_computed(operations, named)
        return found

    def _find_computed(self, operations: list[Any], named: frozenset[str]) -> dict[str, Any]:
        done = _get_ancestors(operations)
        found = {
            tensor.name: tensor
            for operation in self._graph.get_operations()
            if operation in done
            for tensor in operation.outputs
            if self._graph.is_fetchable(tensor) and _holds_numbers(tensor)
        }
        for name in named - set(found) - set(self._variables):
            tensor = self._find_tensor(name)
            if tensor is not None and all(
                operation.type in _READS or not _is_special(operation)
                for operation in _get_ancestors([tensor.op]) - done
            ):
                found[name] = tensor
        names = {operation.name for operation in done}
        for name, tensor in self._variables.items():
            base = name.partition(":")[0]
            # A variable that the run initializes cannot be read yet.
            if base in names and not {f"{base}/Assign", f"{base}/IsInitialized/VarIsInitializedOp"} & names:
                found[name] = tensor
        return found

    def _find_tensor(self, name: str) -> Any:
        try:
            tensor = self._graph.get_tensor_by_name(name)
        except (KeyError, ValueError):
            return None
        return tensor if self._graph.is_fetchable(tensor) and _holds_numbers(tensor) else None


class Update(NamedTuple):
    """An operation that trains a variable, as created by optimizers of TensorFlow 1 and Keras' legacy optimizers.

    Attributes:
        gradients: the gradient that updates the variable, if the operation has one.
        kept: names of the optimizer's variables for it, such as momenta.
    """

    gradients: list[Any]
    kept: list[str]


def find_updates(graph: Any) -> Iterator[Update]:
    """Find the operations of a graph that train variables."""
    for operation in graph.get_operations():
        if not _UPDATE.match(operation.type):
            continue
        given = dict(zip((argument.name for argument in operation.op_def.input_arg), operation.inputs, strict=False))
        kept = [
            _find_variable(tensor)
            for name, tensor in given.items()
            if name != "var" and (tensor.dtype == tf.resource or tensor.dtype._is_ref_dtype)  # noqa: SLF001 - no public member
        ]
        yield Update([given["grad"]] if "grad" in given else [], kept)


def _find_variable(tensor: Any) -> str:
    """Return the name of the variable that an operation's input refers to, directly or through other operations."""
    operation = tensor.op
    while operation.inputs and operation.type in ("Identity", "Enter", "RefIdentity"):
        operation = operation.inputs[0].op
    return str(operation.name)


def _get_ancestors(operations: list[Any]) -> set[Any]:
    """Return all operations that must run for the given ones, including those."""
    seen: set[Any] = set()
    waiting = list(operations)
    while waiting:
        operation = waiting.pop()
        if operation not in seen:
            seen.add(operation)
            waiting += [tensor.op for tensor in operation.inputs]
            waiting += operation.control_inputs
    return seen


def _is_special(operation: Any) -> bool:
    """Return whether an operation needs a fed value, or changes state."""
    return operation.type in ("Placeholder", "PlaceholderV2") or bool(operation.op_def.is_stateful)


def _get_operations(graph: Any, fetches: Any) -> list[Any]:
    operations = []
    for fetch in tf.nest.flatten(fetches):
        element = graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
        operations.append(element.op if isinstance(element, tf.Tensor) else element)
    return operations


def _holds_numbers(tensor: Any) -> bool:
    return bool(tensor.dtype.is_numpy_compatible) and tensor.dtype.base_dtype not in (
        tf.string,
        tf.resource,
        tf.variant,
    )
