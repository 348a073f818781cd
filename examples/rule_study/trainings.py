"""Ten healthy and ten faulty trainings on scikit-learn's data.

Each leaves a run of smdebug.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import xgboost
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from torch import nn

import smdebug.pytorch as smd
import smdebug.xgboost as smd_xgboost

STEPS, BATCH, SAVE_EVERY, EVALUATE_EVERY = 300, 64, 5, 15
ROUNDS = 60

LOADERS: dict[str, Callable[..., Any]] = {
    "digits": load_digits,
    "cancer": load_breast_cancer,
    "wine": load_wine,
    "iris": load_iris,
    "diabetes": load_diabetes,
}


@dataclass
class Training:
    """A network to train by SGD with momentum.

    Attributes:
        says: what it is, or what is wrong with it.
        data: one of LOADERS.
        build: makes the network, from the number of features and of classes.
        rate: learning rate.
        rows: how many samples are trained on; None: three quarters.
        scale: what standardized features are multiplied with; None: the features as they are.
        images: whether the features are images of one channel.
        trains_another: whether the optimizer was given the parameters of another network.
        imbalanced: whether nearly all samples are of one class.
    """

    says: str
    data: str
    build: Callable[[int, int], nn.Module]
    rate: float = 0.05
    rows: int | None = None
    scale: float | None = 1.0
    images: bool = False
    trains_another: bool = False
    imbalanced: bool = False

    framework: ClassVar[str] = "PyTorch"

    def run(self, out_dir: Path, seed: int) -> None:
        """Train and leave a run."""
        torch.manual_seed(seed)
        (features, labels), (other, other_labels) = self._load(seed)
        classes = 1 if self.data == "diabetes" else int(labels.max()) + 1
        network = self.build(features.shape[1], classes)
        trained = self.build(features.shape[1], classes) if self.trains_another else network
        loss_of = nn.MSELoss() if self.data == "diabetes" else nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD(trained.parameters(), lr=self.rate, momentum=0.9)
        every = {
            smd.modes.TRAIN: smd.SaveConfigMode(save_interval=SAVE_EVERY),
            smd.modes.EVAL: smd.SaveConfigMode(save_interval=1),
        }
        hook = smd.Hook(str(out_dir), save_all=True, save_config=smd.SaveConfig(every))
        hook.register_module(network)
        hook.register_loss(loss_of)
        random = np.random.default_rng(seed)
        for step in range(STEPS):
            hook.set_mode(smd.modes.TRAIN)
            network.train()
            rows = torch.from_numpy(random.integers(0, len(labels), BATCH))
            optimizer.zero_grad()
            loss_of(network(features[rows]), labels[rows]).backward()
            optimizer.step()
            if step % EVALUATE_EVERY == EVALUATE_EVERY - 1:
                hook.set_mode(smd.modes.EVAL)
                network.eval()
                with torch.no_grad():
                    loss_of(network(other), other_labels)
        hook.close()
        smd.del_hook()

    def _load(self, seed: int) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
        features, labels = LOADERS[self.data](return_X_y=True)
        if self.scale is not None:
            deviations = features.std(axis=0)
            features = (features - features.mean(axis=0)) / np.where(deviations > 0, deviations, 1) * self.scale
        if self.data == "diabetes":
            labels = ((labels - labels.mean()) / labels.std()).reshape(-1, 1).astype(np.float32)
        if self.imbalanced:
            kept = (labels == 1) | (np.arange(len(labels)) % 60 == 0)
            features, labels = features[kept], labels[kept]
        if self.images:
            features = features.reshape(-1, 1, 8, 8)
        order = np.random.default_rng(seed).permutation(len(labels))
        cut = len(labels) * 3 // 4
        known, other = order[: self.rows or cut], order[cut:]
        given, wanted = torch.from_numpy(features.astype(np.float32)), torch.from_numpy(labels)
        return (given[known], wanted[known]), (given[other], wanted[other])


@dataclass
class Boosting:
    """Trees of XGBoost.

    Attributes:
        says: what it is, or what is wrong with it.
        data: one of LOADERS.
        parameters: XGBoost's.
    """

    says: str
    data: str
    parameters: dict[str, Any] = field(default_factory=dict)

    framework: ClassVar[str] = "XGBoost"

    def run(self, out_dir: Path, seed: int) -> None:
        """Train and leave a run."""
        features, labels = LOADERS[self.data](return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(labels))
        cut = len(labels) * 3 // 4
        known, other = (xgboost.DMatrix(features[rows], labels[rows]) for rows in (order[:cut], order[cut:]))
        parameters = {"nthread": 1, "seed": seed, **self.parameters}
        hook = smd_xgboost.Hook(
            str(out_dir),
            include_collections=["predictions", "labels", "feature_importance", "trees", "losses", "hyperparameters"],
            save_config=smd_xgboost.SaveConfig(save_interval=SAVE_EVERY),
            hyperparameters=parameters,
            validation_data=other,
        )
        evals = [(known, "train"), (other, "validation")]
        xgboost.train(parameters, known, ROUNDS, evals=evals, callbacks=[hook], verbose_eval=False)
        hook.close()
        smd_xgboost.del_hook()


def build_layers(*widths: int, activation: type[nn.Module] = nn.ReLU, norm: bool = False) -> Callable[..., nn.Module]:
    """A network of linear layers, of which every one but the last has an activation."""

    def build(features: int, classes: int) -> nn.Module:
        layers: list[nn.Module] = []
        for given, made in zip((features, *widths), widths, strict=False):
            layers += [nn.Linear(given, made), *([nn.BatchNorm1d(made)] if norm else []), activation()]
        return nn.Sequential(*layers, nn.Linear((features, *widths)[-1], classes))

    return build


def build_convolution(features: int, classes: int) -> nn.Module:
    """Two convolutions over images of 8 x 8."""
    return nn.Sequential(
        nn.Conv2d(features, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(256, classes)
    )


def build_changed(build: Callable[[int, int], nn.Module], change: Callable[[nn.Linear, int], object]) -> Any:
    """The same network with what was done to each linear layer, by its number."""

    def build_and_change(features: int, classes: int) -> nn.Module:
        network = build(features, classes)
        linear = [module for module in network.modules() if isinstance(module, nn.Linear)]
        with torch.no_grad():
            for number, module in enumerate(linear):
                change(module, number)
        return network

    return build_and_change


HEALTHY: dict[str, Training | Boosting] = {
    "mlp": Training("digits, two layers of ReLU", "digits", build_layers(64, 32)),
    "norm": Training("digits, BatchNorm before each ReLU", "digits", build_layers(64, 32, norm=True)),
    "cnn": Training("digits, two convolutions", "digits", build_convolution, rate=0.02, images=True),
    "tanh": Training("digits, two layers of tanh", "digits", build_layers(64, 32, activation=nn.Tanh)),
    "deep": Training("digits, five layers of ReLU", "digits", build_layers(64, 64, 64, 64, 32), rate=0.02),
    "cancer": Training("breast cancer, one layer of ReLU", "cancer", build_layers(32), rate=0.01),
    "wine": Training("wine, one layer of ReLU", "wine", build_layers(16), rate=0.01),
    "iris": Training("iris, logistic regression", "iris", build_layers(), rate=0.05),
    "trees": Boosting(
        "digits, shallow trees", "digits", {"objective": "multi:softprob", "num_class": 10, "max_depth": 3, "eta": 0.2}
    ),
    "stumps": Boosting("diabetes, stumps", "diabetes", {"max_depth": 1, "eta": 0.1, "lambda": 5}),
}
SICK: dict[str, Training | Boosting] = {
    "rate": Training("the learning rate is a thousand times too large", "digits", build_layers(64, 32), rate=50.0),
    "sigmoid": Training("ten layers of sigmoid", "digits", build_layers(*[32] * 10, activation=nn.Sigmoid), rate=0.01),
    "dead": Training(
        "biases of -30: no ReLU is ever active",
        "digits",
        build_changed(build_layers(64, 32), lambda layer, number: layer.bias.fill_(-30) if number < 2 else None),
    ),
    "stray": Training("the optimizer trains another network", "digits", build_layers(64, 32), trains_another=True),
    "forty": Training("forty samples, which the network memorizes", "digits", build_layers(256), rows=40),
    "zeros": Training(
        "all weights start at 0", "digits", build_changed(build_layers(64, 32), lambda layer, _: layer.weight.zero_())
    ),
    "saturated": Training(
        "tanh with weights a thousand times too large",
        "digits",
        build_changed(build_layers(64, 32, activation=nn.Tanh), lambda layer, _: layer.weight.mul_(1000)),
        rate=0.001,
    ),
    "rare": Training("nearly all samples belong to one class", "digits", build_layers(64, 32), imbalanced=True),
    "pixels": Training(
        "pixels without normalization, and weights ten times too large",
        "digits",
        build_changed(build_convolution, lambda layer, _: layer.weight.mul_(10)),
        rate=0.001,
        scale=None,
        images=True,
    ),
    "jungle": Boosting("diabetes, trees of depth 12", "diabetes", {"max_depth": 12, "eta": 0.5, "lambda": 0}),
}
