"""Fetchable tensors of a TensorFlow 1 graph, and the updates of a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.client.session import register_session_run_conversion_functions

v1 = tf.compat.v1

# TensorFlow counts reading a variable among what changes something.
_READS = frozenset({"ReadVariableOp", "VarHandleOp", "Variable", "VariableV2"})
# Those of few rows take the gradient's values, as is saved of a gradient anyway.
_UPDATE = re.compile("(Resource)?(Sparse)?Apply[A-Z]")
# A script that makes what it fetches anew for each run would fill the memory.
_MOST_RECALLED = 64
# The graph's attribute: each refers to the other, and they go together.
_KEPT_AS = "_smdebug_fetched_graph"


class NamedTensors:
    """What to fetch, as one thing to a session; its value is a dictionary of arrays by name.

    A session that is given a dictionary asks what each of its values may be, which takes as long as fetching it.
    """

    def __init__(self, tensors: dict[str, Any]) -> None:
        """Take tensors of one graph by the names that their values get."""
        self.names = tuple(tensors)
        self.tensors = list(tensors.values())


def _expand(fetched: NamedTensors) -> tuple[list[Any], Callable[[list[Any]], dict[str, Any]]]:
    """Return what a session wants to know: the tensors, and what makes their values one."""
    return fetched.tensors, lambda values: dict(zip(fetched.names, values, strict=True))


register_session_run_conversion_functions(NamedTensors, _expand)


class FetchedGraph:
    """Tensors of one graph by the names that runs hold, and which of them a run computes anyway.

    Attributes:
        trainable: names of the variables that are trained.
        gradients: names of the gradients that operations of the graph update variables by, whoever made them.
        optimizer_variables: names of the variables that these operations keep for themselves.
    """

    @classmethod
    def look_at(cls, graph: Any) -> FetchedGraph:
        """Return that of a graph as it is now; of one that is final, as it was before."""
        if not (graph.finalized and hasattr(graph, _KEPT_AS)):
            setattr(graph, _KEPT_AS, cls(graph))
        return cls.of(graph)

    @classmethod
    def of(cls, graph: Any) -> FetchedGraph:
        """Return that of a graph that was looked at."""
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
        # A variable is read by an operation of its own, and is called what it is itself.
        self._variables = {variable.name: _get_read(variable) for variable in variables}
        self._computed: dict[Any, dict[str, Any]] = {}
        # By the objects that were asked for; kept, so that no other has the id of one.
        self._recalled: dict[Any, tuple[list[Any], NamedTensors]] = {}

    def recall(self, fetches: Any, circumstances: Hashable, find: Callable[[], NamedTensors]) -> NamedTensors:
        """Return what `find` has returned for the same fetches under the same circumstances."""
        asked = tf.nest.flatten(fetches)
        key = (tuple(map(id, asked)), circumstances)
        found = self._recalled.get(key)
        if found is None:
            if len(self._recalled) >= _MOST_RECALLED:
                self._recalled.clear()
            found = self._recalled[key] = (asked, find())
        return found[1]

    def get_computed(self, fetches: Any, named: frozenset[str]) -> dict[str, Any]:
        """Return, by name, what can be fetched together with `fetches` without doing anything more.

        Args:
            fetches: what the script asks for.
            named: tensors that may be computed for their own sake, as a loss that only its gradients are asked of, if
                they need nothing that is not there and change nothing.
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
            # An initializer is no step of training: what it is about to set cannot be read yet.
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
    """An operation that trains a variable, as optimizers of TensorFlow 1's way and Keras' legacy ones make them.

    Attributes:
        gradients: what the variable is updated by: one tensor.
        kept: names of the variables that the optimizer keeps beside it, as momenta.
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
    """Return the name of the variable that an operation is given, which may come by way of others."""
    operation = tensor.op
    while operation.inputs and operation.type in ("Identity", "Enter", "RefIdentity"):
        operation = operation.inputs[0].op
    return str(operation.name)


def _get_ancestors(operations: list[Any]) -> set[Any]:
    """Return all that has to run for the operations, themselves included."""
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
    """Tell whether an operation needs something from outside, or changes something."""
    return operation.type in ("Placeholder", "PlaceholderV2") or bool(operation.op_def.is_stateful)


def _get_operations(graph: Any, fetches: Any) -> list[Any]:
    operations = []
    for fetch in tf.nest.flatten(fetches):
        element = graph.as_graph_element(fetch, allow_tensor=True, allow_operation=True)
        operations.append(element.op if isinstance(element, tf.Tensor) else element)
    return operations


def _get_read(variable: Any) -> Any:
    return variable.value()


def _holds_numbers(tensor: Any) -> bool:
    return bool(tensor.dtype.is_numpy_compatible) and tensor.dtype.base_dtype not in (
        tf.string,
        tf.resource,
        tf.variant,
    )
