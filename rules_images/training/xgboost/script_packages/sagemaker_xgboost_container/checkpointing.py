"""Booster checkpoints, one file a round, and training resumed from the newest."""

import re
from pathlib import Path
from typing import Any

import xgboost
from xgboost.callback import EvaluationMonitor, TrainingCallback

CHECKPOINT_FILENAME = "xgboost-checkpoint"


def train(train_args: dict[str, Any], checkpoint_dir: str | Path) -> xgboost.Booster:
    """Call `xgboost.train` with these arguments. Resume from the newest checkpoint, and save one after each round."""
    path, rounds = load_checkpoint(checkpoint_dir)
    # Given the path, XGBoost would guess the format and print a warning.
    model = xgboost.Booster(model_file=bytearray(Path(path).read_bytes())) if path else None
    callbacks = [*train_args.get("callbacks", ()), _ShowMetrics(rounds), save_checkpoint(checkpoint_dir, rounds)]
    left = train_args.get("num_boost_round", 10) - rounds
    changed = {"xgb_model": model, "num_boost_round": left, "callbacks": callbacks, "verbose_eval": False}
    return xgboost.train(**{**train_args, **changed})


def load_checkpoint(checkpoint_dir: str | Path, max_try: int = 5) -> tuple[str | None, int]:
    """Return the newest readable checkpoint of the last `max_try`, and its number of rounds."""
    found = {}
    for path in Path(checkpoint_dir).glob(f"{CHECKPOINT_FILENAME}.*") if checkpoint_dir else ():
        if re.fullmatch(r"\.\d+", path.suffix):
            found[int(path.suffix[1:])] = path
    for number in sorted(found, reverse=True)[:max_try]:
        try:
            xgboost.Booster().load_model(bytearray(found[number].read_bytes()))
        except xgboost.core.XGBoostError:
            # The file is not a booster, or is damaged.
            continue
        return str(found[number]), number + 1
    return None, 0


class SaveCheckpoint(TrainingCallback):
    """Saves the booster after each round, and keeps the files of the last rounds."""

    def __init__(self, checkpoint_dir: str | Path, start_iteration: int = 0, max_to_keep: int = 5) -> None:
        """Set the folder, the number of rounds trained before, and the number of files to keep."""
        super().__init__()
        self._folder = Path(checkpoint_dir)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._before = start_iteration
        self._kept = max_to_keep

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002 - XGBoost's signature
        """Save the booster under a temporary name, then rename the file. Only the first of several workers saves."""
        if xgboost.collective.get_rank():
            return False
        number = self._before + epoch
        path = self.format_path(number)
        partial = path.with_name(f"{path.name}.sagemaker-ignore")
        partial.write_bytes(bytes(model.save_raw("ubj")))
        partial.replace(path)
        if (old := number - self._kept) >= self._before:
            self.format_path(old).unlink(missing_ok=True)
        return False

    def format_path(self, iteration: int) -> Path:
        """Return the checkpoint file of a round."""
        return self._folder / f"{CHECKPOINT_FILENAME}.{iteration}"


def save_checkpoint(
    checkpoint_dir: str | Path,
    start_iteration: int = 0,
    max_to_keep: int = 5,
    num_round: int | None = None,  # noqa: ARG001 - scripts give it; XGBoost tells the last round itself
) -> SaveCheckpoint:
    """Return a callback that saves a checkpoint after each round."""
    return SaveCheckpoint(checkpoint_dir, start_iteration, max_to_keep)


class _ShowMetrics(EvaluationMonitor):
    """Prints metrics with the round's number counted from the start of the whole training."""

    def __init__(self, before: int) -> None:
        super().__init__()
        self._before = before

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        return bool(super().after_iteration(model, self._before + epoch, evals_log))
