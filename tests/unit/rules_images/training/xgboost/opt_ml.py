"""/opt/ml of a training job with the built-in algorithm."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xgboost


class OptMl:
    """A job's /opt/ml."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._channels: dict[str, dict[str, str]] = {}

    def configure(self, **hyperparameters: str) -> None:
        self._write("input/config/hyperparameters.json", json.dumps(hyperparameters))

    def add_channel(self, name: str, content_type: str | None, **files: str) -> None:
        self._channels[name] = {"TrainingInputMode": "File", **({"ContentType": content_type} if content_type else {})}
        self._write("input/config/inputdataconfig.json", json.dumps(self._channels))
        for file, text in files.items():
            self._write(f"input/data/{name}/{file}", text)

    @property
    def failure(self) -> str:
        return (self.root / "output/failure").read_text()

    @property
    def model(self) -> xgboost.Booster:
        booster = xgboost.Booster()
        booster.load_model(bytearray((self.root / "model/xgboost-model").read_bytes()))
        return booster

    def _write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def to_csv(table: np.ndarray[Any, Any]) -> str:
    return "\n".join(",".join(f"{value:.8g}" for value in row) for row in table)


def to_libsvm(labels: np.ndarray[Any, Any], features: np.ndarray[Any, Any]) -> str:
    return "\n".join(
        f"{label:g} {' '.join(f'{column}:{value:.8g}' for column, value in enumerate(row) if value)}"
        for label, row in zip(labels, features, strict=True)
    )
