"""Tests of random hook configurations, against numpy's results.

Types, modes and reductions are random, too; a trial reads what the hook saved.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import smdebug.pytorch as smd
from smdebug.config.reduction_config import ALLOWED_NORMS, ALLOWED_REDUCTIONS
from smdebug.pytorch.tensors.reductions import reduce_tensor
from smdebug.trials import create_trial

MODES = [smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT, smd.modes.GLOBAL]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int16", "int32", "int64", "bool"]


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    dtype = getattr(torch, draw(st.sampled_from(FLOATS + INTEGERS)))
    shape = draw(st.lists(st.integers(1, 4), max_size=3))
    numbers = draw(st.lists(st.integers(-9, 9), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    tensor = torch.tensor(numbers, dtype=torch.float64).reshape(shape)
    tensor = (tensor / 4 if dtype.is_floating_point else tensor.abs()).to(dtype)
    return tensor.T if tensor.dim() == 2 and draw(st.booleans()) else tensor


def reduce_by_numpy(tensor: torch.Tensor, operation: str, of_absolute: bool) -> Any:
    # Sums and products of integers are integers, and wrap around as numpy's do.
    is_whole = not tensor.dtype.is_floating_point and operation in ("sum", "prod")
    array = (tensor.long() if is_whole else tensor.double()).numpy()
    array = np.abs(array) if of_absolute else array
    if operation in ALLOWED_NORMS:
        return np.linalg.norm(array.reshape(-1), int(operation[1]))
    if operation in ("std", "variance"):
        # torch's divisor, which saved values have.
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = ((array - array.mean()) ** 2).sum() / np.float64(array.size - 1)
        return np.sqrt(squares) if operation == "std" else squares
    return getattr(np, operation)(array)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(tensors())
def test_every_reduction_is_numpys(tensor: torch.Tensor) -> None:
    operations = [(name, flag) for name in (*ALLOWED_REDUCTIONS, *ALLOWED_NORMS) for flag in (False, True)]
    with torch.no_grad():
        found = reduce_tensor(tensor, operations)
    for (operation, of_absolute), number in zip(operations, found, strict=True):
        expected = reduce_by_numpy(tensor, operation, of_absolute)
        np.testing.assert_allclose(
            number.double().numpy(), expected, rtol=2e-5, atol=1e-6, err_msg=f"{operation} of absolute: {of_absolute}"
        )


save_modes = st.builds(
    smd.SaveConfigMode,
    save_interval=st.integers(1, 4),
    start_step=st.integers(0, 3),
    end_step=st.none() | st.integers(0, 6),
    save_steps=st.lists(st.integers(0, 6), max_size=2),
)
reduction_configs = st.none() | st.builds(
    smd.ReductionConfig,
    reductions=st.sets(st.sampled_from(ALLOWED_REDUCTIONS)).map(sorted),
    abs_reductions=st.sets(st.sampled_from(ALLOWED_REDUCTIONS)).map(sorted),
    norms=st.sets(st.sampled_from(ALLOWED_NORMS)).map(sorted),
    abs_norms=st.sets(st.sampled_from(ALLOWED_NORMS)).map(sorted),
    save_raw_tensor=st.booleans(),
    save_shape=st.booleans(),
)


def is_due(config: smd.SaveConfigMode, step: int) -> bool:
    within = config.start_step <= step and (config.end_step is None or step < config.end_step)
    return step in config.save_steps or (within and step % config.save_interval == 0)


@settings(deadline=None, max_examples=15)
@given(
    st.fixed_dictionaries(dict.fromkeys(MODES, save_modes)),
    reduction_configs,
    st.lists(st.tuples(st.sampled_from(MODES), tensors()), min_size=1, max_size=5),
)
def test_what_a_hook_saves_is_what_a_trial_reads(configs: Any, reductions: Any, steps: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        hook = smd.Hook(out_dir=str(path), save_config=smd.SaveConfig(configs), reduction_config=reductions)
        hook.get_collection("mine").include("^t$")
        hook.include_collections.append("mine")
        model = torch.nn.Identity()
        hook.register_module(model)
        expected: dict[int, torch.Tensor] = {}
        counted = dict.fromkeys(MODES, -1)
        for number, (mode, tensor) in enumerate(steps):
            hook.set_mode(mode)
            counted[mode] += 1
            mode_step = number if mode is smd.modes.GLOBAL else counted[mode]
            model(torch.zeros(1))
            hook.save_tensor("t", tensor, "mine")
            if is_due(configs[mode], mode_step):
                expected[number] = tensor
        hook.close()
        smd.del_hook()
        trial = create_trial(str(path))
        wants = reductions or smd.ReductionConfig(save_raw_tensor=True)
        saves_something = wants.save_raw_tensor or wants.save_shape or wants.operations()
        assert trial.steps() == (sorted(expected) if saves_something else [])
        for number, tensor in expected.items() if saves_something else ():
            found = trial.tensor("t")
            if wants.save_raw_tensor:
                value = found.value(number)
                widened = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
                np.testing.assert_array_equal(value, widened.numpy())
                assert value.dtype == widened.numpy().dtype
            if wants.save_shape:
                assert found.shape(number) == tuple(tensor.shape)
            saved = found.reduction_values(number)
            assert set(saved) == set(wants.operations())
            for (operation, of_absolute), number_saved in saved.items():
                np.testing.assert_allclose(
                    number_saved, reduce_by_numpy(tensor, operation, of_absolute), rtol=2e-5, atol=1e-6
                )
