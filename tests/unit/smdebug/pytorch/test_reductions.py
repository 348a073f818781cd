"""Tests of saved reductions against numpy, and of their names in the run."""

import numpy as np
import pytest
import torch

import smdebug.pytorch as smd
from smdebug.config.reduction_config import ALLOWED_NORMS, ALLOWED_REDUCTIONS
from smdebug.exceptions import SMDebugValueError
from smdebug.pytorch.tensors.reductions import reduce_tensor
from tests.unit.smdebug.pytorch.small_training import MakeHook, Training
from tests.unit.smdebug.written_run import WrittenRun

OPERATIONS = [*ALLOWED_REDUCTIONS, *ALLOWED_NORMS]
TENSORS = {
    "matrix": torch.linspace(-3, 2, 24).reshape(4, 6),
    "number": torch.tensor(-2.5),
    "rank3": torch.linspace(-1, 1, 60).reshape(3, 4, 5),
    "far_from_zero": torch.linspace(1000, 1001, 12),
    "double": torch.linspace(-3, 2, 7, dtype=torch.float64),
    "strided": torch.linspace(-3, 2, 24).reshape(4, 6).t()[::2],
    "integers": torch.tensor([[3, -1], [2, 2]]),
    "bytes": torch.tensor([3, 200], dtype=torch.uint8),
    "truth": torch.tensor([True, False, True]),
    "half": torch.tensor([1.5, -2.0, 3.0], dtype=torch.float16),
    "bfloat16": torch.tensor([1.5, -2.0, 3.0], dtype=torch.bfloat16),
}

LARGE = {
    "matrix": torch.linspace(-3, 2, 100_000).reshape(1000, 100),
    "of_several_pieces": torch.linspace(-3, 2, 700_001, dtype=torch.float64),
    "far_from_zero": torch.linspace(1000, 1001, 300_000),
    "strided": torch.linspace(-3, 2, 100_000).reshape(1000, 100).t(),
}


def expect(name: str, values: np.ndarray) -> float:
    if name in ("l1", "l2"):
        return float(np.linalg.norm(values.reshape(-1), int(name[1])))
    if name in ("std", "variance"):
        with np.errstate(all="ignore"):
            variance = np.square(values - values.mean()).sum() / np.float64(values.size - 1)
            return variance if name == "variance" else np.sqrt(variance)
    return getattr(values, name)()


@pytest.mark.parametrize("tensor", TENSORS.values(), ids=TENSORS)
@pytest.mark.parametrize("is_abs", [False, True], ids=["plain", "abs"])
def test_reductions_agree_with_numpy(tensor: torch.Tensor, is_abs: bool) -> None:
    numbers = reduce_tensor(tensor, [(operation, is_abs) for operation in OPERATIONS])
    values = tensor.double().numpy()
    values = np.abs(values) if is_abs else values
    for operation, number in zip(OPERATIONS, numbers, strict=True):
        assert number.shape == ()
        # The variance of numbers far from zero has the rounding of its input.
        np.testing.assert_allclose(number.item(), expect(operation, values), rtol=2e-4, err_msg=operation)


@pytest.mark.parametrize("count", [9, 40_000])
@pytest.mark.parametrize("scale", [1e-24, 1e25])
def test_deviations_of_numbers_whose_squares_are_no_float32_agree_with_numpy(count: int, scale: float) -> None:
    values = torch.linspace(-1, 2, count) * scale
    plain, of_absolute = reduce_tensor(values, [("std", False), ("std", True)])
    assert plain.item() == pytest.approx(expect("std", values.double().numpy()), rel=1e-5, abs=0)
    assert of_absolute.item() == pytest.approx(expect("std", values.double().abs().numpy()), rel=1e-5, abs=0)


def test_reductions_of_a_large_tensor_stay_beside_it() -> None:
    with torch.device("meta"):
        numbers = reduce_tensor(LARGE["matrix"], [("sum", False), ("std", True)])
    assert [number.device.type for number in numbers] == ["cpu", "cpu"]


@pytest.mark.parametrize("tensor", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("is_abs", [False, True], ids=["plain", "abs"])
def test_reductions_of_large_tensors_agree_with_numpy(tensor: torch.Tensor, is_abs: bool) -> None:
    # Their product is more, or less, than a number can be.
    operations = [(operation, is_abs) for operation in OPERATIONS if operation != "prod"]
    values = tensor.double().numpy()
    values = np.abs(values) if is_abs else values
    for (operation, _), number in zip(operations, reduce_tensor(tensor, operations), strict=True):
        assert (number.shape, number.dtype) == ((), tensor.dtype)
        np.testing.assert_allclose(number.item(), expect(operation, values), rtol=2e-4, err_msg=operation)


def test_product_of_a_large_tensor() -> None:
    tensor = torch.ones(600_000)
    tensor[::200_000] = -1.5
    plain, absolute = reduce_tensor(tensor, [("prod", False), ("prod", True)])
    assert (plain.item(), absolute.item()) == (-(1.5**3), 1.5**3)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_large_tensors_hide_no_odd_number(operation: str, odd: float) -> None:
    tensor = torch.ones(600_000)
    tensor[400_000] = odd
    (number,) = reduce_tensor(tensor, [(operation, False)])
    with np.errstate(all="ignore"):
        assert str(number.item()) == str(float(expect(operation, tensor.numpy())))


def test_large_tensors_within_inference_mode_and_without() -> None:
    tensor = torch.linspace(-3, 2, 100_000)
    with torch.inference_mode():
        first = reduce_tensor(tensor * 1, [("l1", False)])
    (second,) = reduce_tensor(tensor, [("l1", False)])
    assert first[0].item() == second.item() == pytest.approx(tensor.abs().sum().item(), rel=1e-6)


def test_complex_numbers_have_no_smallest() -> None:
    with pytest.raises(SMDebugValueError, match="min"):
        reduce_tensor(torch.tensor([1j]), [("min", False)])
    (number,) = reduce_tensor(torch.tensor([3 + 4j]), [("min", True)])
    assert number.item() == 5


def test_reductions_replace_the_values_of_all_but_losses(
    make_hook: MakeHook, training: Training, run: WrittenRun
) -> None:
    config = smd.ReductionConfig(reductions=["min"], abs_reductions=["mean"], norms=["l2"], abs_norms=["l1"])
    hook = make_hook(reduction_config=config, include_collections=["weights", "gradients"])
    hook.register_module(training.model)
    hook.register_loss(training.loss)
    weight = training.model.fc1.weight.detach().numpy().copy()
    training.step()
    values = run.values(0)
    names = [f"{prefix}Net_fc{number}.weight" for prefix in ("", "gradient/") for number in (1, 2)]
    names += [f"gradient/Net_fc{number}.bias" for number in (1, 2)]
    assert set(values) == {
        "CrossEntropyLoss_output_0",
        *(f"smdebug/reductions/{kind}/{name}" for kind in ("min", "abs_mean", "l2", "abs_l1") for name in names),
    }
    assert values["smdebug/reductions/min/Net_fc1.weight"] == weight.min()
    np.testing.assert_allclose(values["smdebug/reductions/abs_l1/Net_fc1.weight"], np.abs(weight).sum(), rtol=1e-6)


def test_collections_due_together_add_up(make_hook: MakeHook, training: Training, run: WrittenRun) -> None:
    hook = make_hook(include_collections=["one", "two"])
    for name, config in (
        ("one", smd.ReductionConfig(reductions=["min", "max"])),
        ("two", smd.ReductionConfig(reductions=["max"], norms=["l1"], save_raw_tensor=True)),
    ):
        hook.get_collection(name).include("^Net_fc1.weight$")
        hook.get_collection(name).reduction_config = config
    hook.get_collection("two").save_config = smd.SaveConfig(save_interval=2)
    hook.register_module(training.model)
    training.step(2)
    assert len(run.index(0)["tensor_payload"]) == 4
    assert set(run.values(1)) == {f"smdebug/reductions/{kind}/Net_fc1.weight" for kind in ("min", "max")}
