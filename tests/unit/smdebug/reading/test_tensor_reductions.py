import numpy as np
import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.format.reductions import (
    SavedReduction,
    get_basic_numpy_reduction,
    get_numpy_reduction,
    get_reduction_tensor_name,
    reverse_reduction_tensor_name,
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["min", "max", "mean", "std", "variance", "sum", "prod", "l1", "l2"])
@pytest.mark.parametrize("of_absolute", [False, True])
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4)])
def test_is_what_plain_arithmetic_gives(name: str, of_absolute: bool, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(1).normal(size=shape)
    flat = [abs(x) if of_absolute else x for x in np.ravel(values).tolist()]
    mean = sum(flat) / len(flat)
    variance = sum((x - mean) ** 2 for x in flat) / len(flat)
    expected = {
        "min": min(flat),
        "max": max(flat),
        "mean": mean,
        "variance": variance,
        "std": variance**0.5,
        "sum": sum(flat),
        "prod": float(np.prod(flat)),
        "l1": sum(map(abs, flat)),
        "l2": sum(x * x for x in flat) ** 0.5,
    }[name]
    if len(shape) == 2 and name == "l1":
        expected = max(sum(map(abs, column)) for column in values.T.tolist())
    if len(shape) == 2 and name == "l2":
        matrix = np.abs(values) if of_absolute else values
        expected = np.linalg.eigvalsh(matrix.T @ matrix).max() ** 0.5
    assert get_numpy_reduction(name, values, of_absolute) == pytest.approx(expected)


def test_norms_of_matrices_that_are_empty_or_not_finite_are_numbers() -> None:
    for name in ("l1", "l2"):
        assert get_numpy_reduction(name, np.zeros((0, 3))) == 0
        assert get_numpy_reduction(name, np.zeros((3, 0))) == 0
        assert np.isnan(get_numpy_reduction(name, np.array([[np.nan, 1.0], [1.0, 1.0]])))
        assert get_numpy_reduction(name, np.array([[np.inf, 1.0], [1.0, 1.0]])) == np.inf


def test_absolute_whole_numbers_keep_their_type_unless_they_do_not_fit_it() -> None:
    largest = get_numpy_reduction("max", np.array([1, -2]), abs=True)
    assert (largest, largest.dtype) == (2, np.int64)
    largest = get_numpy_reduction("max", np.array([1, -128], np.int8), abs=True)
    assert (largest, largest.dtype) == (128, np.uint8)


def test_a_saved_reduction_of_one_element_converts_to_a_number_and_has_an_index() -> None:
    saved = np.array([1.5], np.float32).view(SavedReduction)
    assert (float(saved), int(saved), saved[0], saved.shape) == (1.5, 1, 1.5, (1,))
    with pytest.raises(ValueError, match="size 1"):
        float(np.zeros(2).view(SavedReduction))


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.bool_])
def test_norms_of_other_types(dtype: type) -> None:
    assert get_numpy_reduction("l2", np.ones((2, 2), dtype)) == pytest.approx(2)


def test_what_half_precision_cannot_hold_comes_in_single_precision() -> None:
    values = np.full(3000, 300, np.float16)
    for name, expected in {"sum": 900_000, "l1": 900_000, "mean": 300, "max": 300}.items():
        assert get_numpy_reduction(name, values) == expected
    assert get_numpy_reduction("variance", np.array([-600, 600], np.float16)) == 360_000
    assert get_numpy_reduction("prod", np.array([300, 300], np.float16), abs=True) == 90_000
    assert np.isnan(get_numpy_reduction("sum", np.array([1, np.nan], np.float16)))
    assert get_numpy_reduction("sum", np.array([1, 2], np.float16)).dtype == np.float16


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
def test_absolute_value_of_the_lowest_integer_is_positive(dtype: type[np.signedinteger]) -> None:
    lowest = int(np.iinfo(dtype).min)
    values = np.array([lowest, 1], dtype)
    assert int(get_numpy_reduction("max", values, abs=True)) == -lowest
    assert int(get_numpy_reduction("min", values, abs=True)) == 1
    assert get_numpy_reduction("l1", values, abs=True) == pytest.approx(-lowest + 1)


@pytest.mark.parametrize("values", [np.array(["a", "b"]), np.array([], "U1")])
def test_text_has_no_reductions(values: np.ndarray) -> None:
    for name in ("min", "mean", "l1"):
        with pytest.raises(SMDebugValueError, match=f"have no {name}: they are not numbers"):
            get_numpy_reduction(name, values)


@pytest.mark.parametrize("name", ["min", "max"])
def test_no_elements_have_no_extremes(name: str) -> None:
    with pytest.raises(SMDebugValueError, match="without elements"):
        get_numpy_reduction(name, np.zeros((0, 3)))


def test_unknown_reduction_lists_the_known() -> None:
    with pytest.raises(SMDebugValueError, match=r"'median' is not a reduction.*min, max.*l2"):
        get_numpy_reduction("median", np.ones(2))


def test_basic_reductions_are_all_but_norms() -> None:
    values = np.array([[3.0, -4.0]])
    assert [get_basic_numpy_reduction(name, values) for name in ("min", "l1", "l2")] == [-4, None, None]


def test_names_both_ways() -> None:
    name = get_reduction_tensor_name("d1/kernel:0", "l1", abs=True)
    assert name == "smdebug/reductions/abs_l1/d1/kernel"
    assert reverse_reduction_tensor_name(name) == ("d1/kernel", "l1", True)
    kept = get_reduction_tensor_name("d1/kernel:0", "l1", abs=False, remove_colon_index=False)
    assert kept == "smdebug/reductions/l1/d1/kernel:0"
