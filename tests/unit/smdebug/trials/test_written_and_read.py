"""Tests of random runs, written and read back unchanged.

Tensors, types, shapes, modes, workers and gaps between steps are random.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smdebug.config.reduction_config import ALLOWED_REDUCTIONS
from smdebug.mode_keys import ModeKeys
from smdebug.trials import create_trial
from tests.unit.smdebug.runs import RunMaker

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["bool", "complex64", "complex128"]
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=30).filter(
    lambda name: "smdebug/reductions/" not in name
)
SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype, shape = np.dtype(draw(st.sampled_from(DTYPES))), draw(SHAPES)
    size = int(np.prod(shape))
    content = draw(st.binary(min_size=size * dtype.itemsize, max_size=size * dtype.itemsize))
    if dtype == np.bool_:
        content = bytes(byte & 1 for byte in content)
    array = np.frombuffer(content, dtype).reshape(shape)
    return array.T if draw(st.booleans()) else array


@st.composite
def runs(draw: st.DrawFn) -> tuple[int, list[tuple[int, ModeKeys, dict[str, np.ndarray]]]]:
    """(workers, steps); a step is its global number, its mode and its tensors."""
    numbers = sorted(draw(st.sets(st.integers(0, 5000), min_size=1, max_size=5)))
    tensors = st.dictionaries(NAMES, arrays(), min_size=1, max_size=4)
    steps = [(number, draw(st.sampled_from(list(ModeKeys))), draw(tensors)) for number in numbers]
    return draw(st.integers(1, 3)), steps


def check_same(found: Any, written: np.ndarray) -> None:
    assert (found.dtype, found.shape) == (written.dtype, written.shape)
    if written.dtype == np.complex64:
        # It is widened for the file, and a processor makes a signalling NaN a quiet one on the way.
        with np.errstate(invalid="ignore"):
            written = written.astype(np.complex128).astype(np.complex64)
    # Bytes, not numbers: a NaN has to come back as the NaN that it was.
    assert found.tobytes() == written.tobytes()


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(runs())
def test_what_is_written_is_read(run: tuple[int, list[tuple[int, ModeKeys, dict[str, np.ndarray]]]]) -> None:
    workers, steps = run
    with tempfile.TemporaryDirectory() as folder:
        maker = RunMaker(Path(folder) / "run", workers)
        mode_steps: dict[ModeKeys, list[int]] = {mode: [] for mode in ModeKeys}
        for number, mode, tensors in steps:
            mode_step = number if mode is ModeKeys.GLOBAL else len(mode_steps[mode])
            mode_steps[mode].append(mode_step)
            for worker in maker.workers:
                maker.write_step(number, tensors, mode, mode_step, worker)
        maker.end()
        trial = create_trial(maker.out_dir)
        assert trial.steps() == [number for number, _, _ in steps]
        assert trial.workers() == maker.workers
        assert set(trial.tensor_names()) == {name for _, _, tensors in steps for name in tensors}
        for mode in set(ModeKeys) - {ModeKeys.GLOBAL}:
            assert trial.steps(mode) == mode_steps[mode]
        for number, mode, tensors in steps:
            assert trial.mode(number) is mode
            assert trial.tensor_names(step=number) == sorted(tensors)
            for name, written in tensors.items():
                for worker in maker.workers:
                    check_same(trial.tensor(name).value(number, worker=worker), written)
                assert trial.tensor(name).shape(number) == written.shape


@settings(deadline=None, max_examples=15)
@given(st.sampled_from(ALLOWED_REDUCTIONS), st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.booleans())
def test_computed_reductions_are_numpys(reduction: str, numbers: list[float], of_absolute: bool) -> None:
    value = np.array(numbers)
    with tempfile.TemporaryDirectory() as folder:
        maker = RunMaker(Path(folder) / "run")
        maker.write_step(0, {"t": value})
        maker.end()
        found = create_trial(maker.out_dir).tensor("t").reduction_value(0, reduction, abs=of_absolute)
    data = np.abs(value) if of_absolute else value
    np.testing.assert_allclose(found, getattr(np, {"variance": "var"}.get(reduction, reduction))(data))
