"""Detection of activation functions' tensors in every framework.

Names: MXNet `dense0_relu_output_0` and `relu0_output_0`, Keras `re_lu_1/outputs` and `relu/outputs`, PyTorch
`layer1.0.relu_output_0` and `relu1_output_0`. Some names do not reveal the function, such as that of the third module
of an nn.Sequential (`2_output_0`), or `act`. Such a module is recognised by its values if both its input and its output
were saved.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

RELU, TANH, SIGMOID = "relu", "tanh", "sigmoid"
# All inputs are so large that both functions return 1.
TANH_OR_SIGMOID = "tanh or sigmoid"

_KINDS = {RELU: r"re_?lu", TANH: "tanh", SIGMOID: "sigmoid"}
# LeakyReLU, PReLU, Hardtanh and similar functions are different functions.
_NOT_BEFORE = r"(?<![a-z])(?<!leaky_)(?<!p_)(?<!hard_)"
_SIDES = {"input": r"(?:_input|/inputs)", "output": r"(?:_output|/outputs)"}
_OUTPUT = re.compile(r"(.*)(?:_output(_\d+)|/outputs(.*))")

# Half precision and fused kernels are inexact.
_TOLERANCE = 2e-3


def build_names_regex(kinds: Iterable[str], side: str) -> str:
    """Return the regex of the inputs or outputs (`side`) of activation functions with recognisable names."""
    alternatives = "|".join(_KINDS[kind] for kind in kinds)
    return rf"(?i){_NOT_BEFORE}(?:{alternatives})\d*(?:_\d+)?{_SIDES[side]}"


def tell_by_name(name: str) -> str | None:
    """Return the activation function that the name of a tensor contains; None if it contains none."""
    lower = name.lower()
    return next((kind for kind in (SIGMOID, TANH) if kind in lower), RELU if re.search(_KINDS[RELU], lower) else None)


def pair_names(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return (input, output) of every module for which both names are given."""
    known = set(names)
    pairs = []
    for name in names:
        match = _OUTPUT.fullmatch(name)
        if match is None:
            continue
        module, number, tail = match.groups()
        partner = f"{module}_input{number}" if number else f"{module}/inputs{tail}"
        if partner in known:
            pairs.append((partner, name))
    return pairs


def recognise(given: NDArray[Any], made: NDArray[Any]) -> str | None:
    """Return the activation function that turns an input into an output; "" for none, None if the values cannot tell.

    A ReLU can be recognised by a negative input, tanh and sigmoid only by inputs outside the range in which they are
    nearly linear. TANH_OR_SIGMOID is the result for inputs so large that both functions return the same.
    """
    if given.shape != made.shape or given.size == 0 or given.dtype.kind != "f" or made.dtype.kind != "f":
        return ""
    if not np.isfinite(given).all():
        return None
    if np.array_equal(made, np.maximum(given, 0)):
        return RELU if (given < 0).any() else None
    wide = given.astype(np.float64)
    is_sigmoid = np.allclose(made, 1 / (1 + np.exp(-np.clip(wide, -700, 700))), atol=_TOLERANCE, rtol=0)
    is_tanh = np.allclose(made, np.tanh(wide), atol=_TOLERANCE, rtol=0)
    if is_tanh and not is_sigmoid:
        return TANH if np.abs(wide).max() >= 1 else None
    if is_sigmoid:
        return TANH_OR_SIGMOID if is_tanh else SIGMOID
    return ""


def compute_inactive_percent(is_active: NDArray[np.bool_], threshold_inactivity: float) -> float:
    """Percentage of units that are active in less than threshold_inactivity percent of the samples.

    Args:
        is_active: (samples, ...); every position after the first axis is a unit. An array of fewer dimensions is one
            sample's single unit, or the samples of one unit.
        threshold_inactivity: percent.

    >>> compute_inactive_percent(np.array([[0.0, 1.0], [0.0, 0.0]]) > 0, 1.0)
    50.0
    """
    if not is_active.size:
        return 0.0
    units = is_active.reshape(len(is_active) if is_active.ndim else 1, -1)
    active_percent = np.count_nonzero(units, axis=0) * 100.0 / len(units)
    return float(np.count_nonzero(active_percent < threshold_inactivity) * 100.0 / units.shape[1])


class ActivationFinder:
    """Remembers which modules were recognised as activation functions.

    Args:
        read: returns the values of a tensor at a global step, or None if it has none.
    """

    def __init__(self, read: Callable[[str, int], NDArray[Any] | None]) -> None:
        self._read = read
        self._names: tuple[str, ...] = ()
        self._pairs: list[tuple[str, str]] = []
        self._kinds: dict[str, str] = {}

    def find(self, names: tuple[str, ...], step: int) -> dict[tuple[str, str], str]:
        """Return the kinds of the recognised modules by (input name, output name), based on all steps so far."""
        if names is not self._names:
            self._names, self._pairs = names, pair_names(names)
        found = {}
        for pair in self._pairs:
            kind = self._kinds.get(pair[1])
            if kind is None:
                kind = self._look(pair, step)
            if kind:
                found[pair] = kind
        return found

    def _look(self, pair: tuple[str, str], step: int) -> str | None:
        given, made = (self._read(name, step) for name in pair)
        if given is None or made is None:
            return None
        kind = recognise(given, made)
        if kind is not None and kind != TANH_OR_SIGMOID:
            self._kinds[pair[1]] = kind
        return kind
