"""Tests of batched reading of many small variables."""

import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest

from tests.unit.smdebug.tensorflow.frameworks import keras, tf

MakeReader = Callable[[], Any]


@pytest.fixture
def make_reader() -> MakeReader:
    from smdebug.tensorflow.steps.variable_reader import VariableReader

    return VariableReader


def make_variables(dtype: str, shapes: list[tuple[int, ...]]) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    numbers = [np.asarray(generator.integers(-5, 5, shape)) for shape in shapes]
    return {f"{dtype}{index}": tf.Variable(tf.cast(each, dtype)) for index, each in enumerate(numbers)}


def test_values_are_those_of_each_variable(make_reader: MakeReader) -> None:
    shapes: list[tuple[int, ...]] = [(), (1,), (0, 3), (2, 3), (4, 1, 2)]
    groups = [make_variables(dtype, shapes) for dtype in ("float32", "bool", "bfloat16", "complex64", "int64")]
    variables = {name: variable for group in groups for name, variable in group.items()}
    read = make_reader().read(variables)
    assert read.keys() == variables.keys()
    for name, variable in variables.items():
        expected = variable.numpy()
        assert (read[name].dtype, read[name].shape) == (expected.dtype, expected.shape), name
        np.testing.assert_array_equal(read[name], expected, err_msg=name)


def test_later_changes_do_not_show(make_reader: MakeReader) -> None:
    variables = make_variables("float32", [(3,)] * 4)
    reader = make_reader()
    before = reader.read(variables)
    copies = {name: array.copy() for name, array in before.items()}
    for variable in variables.values():
        variable.assign_add(tf.ones(3))
    after = reader.read(variables)
    for name, copy in copies.items():
        np.testing.assert_array_equal(before[name], copy)
        np.testing.assert_array_equal(after[name], copy + 1)


def test_what_is_large_or_of_another_kind_is_left_out(make_reader: MakeReader) -> None:
    small = make_variables("float32", [(3,)] * 4)
    others = {
        "large": tf.Variable(tf.zeros((128, 128))),
        "text": tf.Variable(["text"]),
        "of no fixed shape": tf.Variable(tf.zeros(2), shape=tf.TensorShape([None])),
        "no variable": tf.zeros(2),
        "alone": tf.Variable(1),
    }
    assert make_reader().read(small | others).keys() == small.keys()
    assert make_reader().read(others) == {}


def test_variables_of_keras_are_read(make_reader: MakeReader) -> None:
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2), keras.layers.BatchNormalization()])
    variables = {variable.path: variable for variable in model.weights}
    read = make_reader().read(variables)
    assert read.keys() == variables.keys()
    for name, variable in variables.items():
        np.testing.assert_array_equal(read[name], variable.numpy())


@pytest.mark.slow
def test_the_number_of_kept_functions_is_limited(make_reader: MakeReader) -> None:
    reader = make_reader()
    groups = [make_variables("float32", [(index,)] * 4) for index in range(1, 20)]
    for group in groups:
        read = reader.read(group)
        for name, variable in group.items():
            np.testing.assert_array_equal(read[name], variable.numpy())
    assert len(reader._readers) <= 16


def test_large_variables_are_freed_with_their_model(make_reader: MakeReader) -> None:
    reader = make_reader()
    variables = make_variables("float32", [(3,)] * 4) | {"large": tf.Variable(tf.zeros((128, 128)))}
    reader.read(variables)
    freed = ref(variables["large"])
    del variables
    gc.collect()
    assert freed() is None


def test_a_variable_with_the_id_of_a_freed_one_is_read(make_reader: MakeReader) -> None:
    reader = make_reader()
    variables = make_variables("float32", [(3,)] * 4)
    reader.read(variables)
    (known,) = reader._readers.values()
    known.variables[0] = lambda: None  # as after its end
    variables["float320"].assign([7, 8, 9])
    assert reader.read(variables)["float320"].tolist() == [7, 8, 9]
    assert reader._readers[tuple(map(id, variables.values()))] is not known
