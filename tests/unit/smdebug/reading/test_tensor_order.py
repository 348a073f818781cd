from __future__ import annotations

import pytest

from smdebug.reading.tensor_order import order_names

LAYERS = ["embed.weight", "net.0.weight", "net.9.weight", "net.10.weight", "head.weight"]
GRADIENTS = [f"gradient/{name}" for name in LAYERS]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (LAYERS, LAYERS),
        ([*LAYERS, "loss", *reversed(GRADIENTS)], [*LAYERS, "loss", *GRADIENTS]),
        (["loss", *reversed(GRADIENTS)], ["loss", *GRADIENTS]),
        (GRADIENTS, GRADIENTS),
        (
            ["dense/kernel", "a/kernel", "gradients/a/kernelGrad", "gradients/dense/kernelGrad"],
            ["dense/kernel", "a/kernel", "gradients/dense/kernelGrad", "gradients/a/kernelGrad"],
        ),
        (["f1", "f10", "f2"], ["f1", "f2", "f10"]),
        (["b", "a", "b"], ["b", "a"]),
        (["1", "-", "a1", "²"], ["1", "-", "a1", "²"]),
        ([], []),
    ],
)
def test_tensors_are_in_the_order_of_the_model(written: list[str], expected: list[str]) -> None:
    assert order_names(written) == expected
