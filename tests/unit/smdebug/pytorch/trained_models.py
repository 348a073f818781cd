"""Models of many kinds, and optimizers that train them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.func import vmap
from torch.nn.utils import parametrizations, weight_norm
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

BATCH, FEATURES, CLASSES = 4, 6, 3


class Classifier(nn.Module):
    """What the other models are made of: a body of a kind, and a head."""

    def __init__(self, body: nn.Module, width: int = FEATURES) -> None:
        super().__init__()
        self.body = body
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).flatten(1))


class Function(nn.Module):
    def __init__(self, function: Callable[..., torch.Tensor], *parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.parts = nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.parts)


def tie_weights() -> nn.Module:
    first, second = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, FEATURES)
    second.weight = first.weight
    return nn.Sequential(first, nn.Tanh(), second)


def freeze() -> nn.Module:
    body = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh(), nn.Linear(FEATURES, FEATURES))
    return body.requires_grad_(False)


def freeze_in_part() -> nn.Module:
    body = nn.Sequential(nn.Linear(FEATURES, FEATURES), nn.Tanh(), nn.Linear(FEATURES, FEATURES))
    body[0].weight.requires_grad_(False)
    return body


def convolve() -> nn.Module:
    image = Function(lambda x, *_: x.view(-1, 1, 2, 3))
    body = nn.Sequential(image, nn.Conv2d(1, 4, 2), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten())
    images: Any = body
    return Classifier(images.to(memory_format=torch.channels_last), 8)


class Observed(nn.Module):
    """As quantization-aware training puts stubs into a model."""

    scale: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.lower = nn.Parameter(torch.tensor(-1.0))
        self.register_buffer("scale", torch.tensor(0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.scale.mul_(0.9).add_(x.detach().abs().max() * 0.1 / 128)
        return torch.fake_quantize_per_tensor_affine(x, float(self.scale), 0, -128, 127).clamp_min(self.lower)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
        return gradient * 2


def resize_output(x: torch.Tensor, part: nn.Module) -> torch.Tensor:
    # The memory of an output that is not needed for the backward pass is given up, as pipelines do.
    output = part(x)
    kept = output * 1
    output.data.untyped_storage().resize_(0)
    return kept


def add_slope(x: torch.Tensor, part: nn.Linear) -> torch.Tensor:
    (slope,) = torch.autograd.grad(part(x).square().sum(), part.weight, create_graph=True)
    return x + slope.sum()


def bodies() -> dict[str, Callable[[], nn.Module]]:
    def line() -> nn.Module:
        return nn.Linear(FEATURES, FEATURES)

    def embed(x: torch.Tensor, table: nn.Module) -> torch.Tensor:
        return table(x.abs().mul(2).long().clamp(max=8)).mean(1)

    return {
        "linear": lambda: nn.Sequential(line(), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(FEATURES)),
        "lstm": lambda: Function(lambda x, lstm: lstm(x.unsqueeze(1))[0], nn.LSTM(FEATURES, FEATURES, 2)),
        "gru cell": lambda: Function(lambda x, cell: cell(cell(x)), nn.GRUCell(FEATURES, FEATURES)),
        "transformer": lambda: Function(
            lambda x, layer: layer(x.unsqueeze(0))[0], nn.TransformerEncoderLayer(FEATURES, 2, 8, batch_first=True)
        ),
        "attention": lambda: Function(lambda x, part: part(x, x, x)[0], nn.MultiheadAttention(FEATURES, 3)),
        "embedding": lambda: Function(embed, nn.Embedding(9, FEATURES, padding_idx=0)),
        "sparse embedding": lambda: Function(embed, nn.Embedding(9, FEATURES, sparse=True)),
        "embedding bag": lambda: Function(
            lambda x, bag: bag(x.abs().mul(2).long().clamp(max=8)), nn.EmbeddingBag(9, FEATURES, sparse=True)
        ),
        "convolution": convolve,
        "old weight norm": lambda: weight_norm(line()),
        "weight norm": lambda: parametrizations.weight_norm(line()),
        "spectral norm": lambda: parametrizations.spectral_norm(line()),
        "orthogonal": lambda: parametrizations.orthogonal(line()),
        "tied": tie_weights,
        "frozen": freeze,
        "frozen in part": freeze_in_part,
        "lazy": lambda: nn.Sequential(nn.LazyLinear(FEATURES), nn.LazyBatchNorm1d()),
        "in place": lambda: nn.Sequential(line(), nn.ReLU(inplace=True), line(), nn.Hardtanh(inplace=True)),
        "own function in place": lambda: Function(lambda x, part: Doubled.apply(part(x)), line()),
        "checkpoint": lambda: Function(lambda x, part: checkpoint(part, x, use_reentrant=False), line()),
        "reentrant checkpoint": lambda: Function(
            lambda x, part: checkpoint(part, x.detach().requires_grad_(), use_reentrant=True),
            nn.Sequential(line(), nn.Dropout(0.3)),
        ),
        "sequential checkpoint": lambda: Function(
            lambda x, *parts: checkpoint_sequential(list(parts), 2, x, use_reentrant=False), line(), nn.Tanh(), line()
        ),
        "traced": lambda: torch.jit.trace(nn.Sequential(line(), nn.Tanh()), torch.randn(BATCH, FEATURES)),
        "scripted": lambda: torch.jit.script(nn.Sequential(line(), nn.GELU())),
        "quantized": lambda: nn.Sequential(line(), Observed()),
        "complex": lambda: Function(lambda x, part: part(x.to(torch.complex64)).abs(), line().to(torch.complex64)),
        "views": lambda: Function(lambda x, part: part(x).t().conj().unsqueeze(0)[0].t().expand(1, -1, -1)[0], line()),
        "memory given up": lambda: Function(resize_output, line()),
        "nothing trained": lambda: Function(lambda x, _: x, nn.Identity()),
        "called twice": lambda: Function(lambda x, part: part(part(x)), line()),
        "slope within the forward pass": lambda: Function(add_slope, line()),
        "returns structures": lambda: Function(lambda x, part: part({"x": x})["y"][0], Structures()),
        "vmap": lambda: Function(lambda x, part: vmap(part)(x.unsqueeze(1)).squeeze(1), line()),
    }


class Structures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(FEATURES, FEATURES)

    def forward(self, values: dict[str, torch.Tensor]) -> dict[str, Any]:
        return {"y": (self.part(values["x"]), None, [1, "text"])}


def optimizers() -> dict[str, Callable[..., torch.optim.Optimizer]]:
    o = torch.optim
    return {
        "SGD": lambda p: o.SGD(p, 0.1),
        "momentum foreach": lambda p: o.SGD(p, 0.1, momentum=0.9, nesterov=True, foreach=True),
        "Adam fused": lambda p: o.Adam(p, 0.01, fused=True),
        "AdamW amsgrad": lambda p: o.AdamW(p, 0.01, amsgrad=True),
        "Adam capturable lr": lambda p: o.Adam(p, torch.tensor(0.01), foreach=False),
        "RMSprop": lambda p: o.RMSprop(p, 0.01, centered=True, momentum=0.1),
        "Adagrad": lambda p: o.Adagrad(p, 0.1),
        "Adadelta": lambda p: o.Adadelta(p),
        "Adamax": lambda p: o.Adamax(p),
        "NAdam": lambda p: o.NAdam(p, 0.01),
        "RAdam": lambda p: o.RAdam(p, 0.01),
        "ASGD": lambda p: o.ASGD(p, 0.1),
        "Rprop": lambda p: o.Rprop(p),
        "Adafactor": lambda p: o.Adafactor(p),
        # It takes sparse gradients alone: those of a table that comes first.
        "SparseAdam": lambda p: o.SparseAdam(p[:1], 0.01),
        "LBFGS": lambda p: o.LBFGS(p, max_iter=3, line_search_fn="strong_wolfe"),
    }
