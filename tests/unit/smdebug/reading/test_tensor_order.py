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
        # Only some weights were saved, and each layer has two gradients.
        (
            ["net.0.w", "net.1.w", "gradient/net.1.b", "gradient/net.1.w", "gradient/net.0.b", "gradient/net.0.w"],
            ["net.0.w", "net.1.w", "gradient/net.0.w", "gradient/net.0.b", "gradient/net.1.w", "gradient/net.1.b"],
        ),
        (
            [f"gradient/net.{layer}.{name}" for layer in range(30, -1, -1) for name in ("b", "w")],
            [f"gradient/net.{layer}.{name}" for layer in range(31) for name in ("w", "b")],
        ),
        (["loss", "gradient/a"], ["loss", "gradient/a"]),
        (["f1", "f10", "f2"], ["f1", "f2", "f10"]),
        (["b", "a", "b"], ["b", "a"]),
        (["1", "-", "a1", "²"], ["1", "-", "a1", "²"]),
        ([], []),
    ],
)
def test_tensors_are_in_the_order_of_the_model(written: list[str], expected: list[str]) -> None:
    assert order_names(written) == expected
