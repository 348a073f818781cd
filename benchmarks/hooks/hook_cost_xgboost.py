"""Hook cost of an XGBoost round, beside XGBoost's own EvaluationMonitor.

As a script it prints one JSON line: processor milliseconds a round of each way of training.

    python benchmarks/hooks/hook_cost_xgboost.py --rows 2000 --features 30
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROUNDS = 60
REPEATS = 8
SIZES = {"small data": ("--rows", "2000", "--features", "30"), "larger data": ("--rows", "20000", "--features", "40")}


def time_training(data: Any, other: Any, callbacks: list[Any]) -> float:
    """Return the processor seconds per round, without the first round of a training.

    A round takes about a millisecond, and its wall-clock time would include other work of the machine. The training has
    one thread.
    """
    import xgboost

    class Clock(xgboost.callback.TrainingCallback):
        began = 0.0

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:  # noqa: ARG002
            if epoch == 0:
                self.began = time.process_time()
            return False

    clock = Clock()
    parameters = {"objective": "binary:logistic", "max_depth": 4, "eta": 0.1, "nthread": 1}
    xgboost.train(
        parameters,
        data,
        ROUNDS,
        evals=[(data, "train"), (other, "validation")],
        callbacks=[*callbacks, clock],
        verbose_eval=False,
    )
    return (time.process_time() - clock.began) / (ROUNDS - 1)


def measure_call(data: Any, hook: Any) -> float:
    """Return the processor seconds of the idle hook's callback alone, which are too short to measure in a training."""
    import xgboost

    booster = xgboost.train({"nthread": 1}, data, 1)
    log = {"train": {"logloss": [0.5]}, "validation": {"logloss": [0.5]}}
    hook.after_iteration(booster, 0, log)
    calls = 2000
    began = time.process_time()
    for epoch in range(1, calls + 1):
        hook.after_iteration(booster, epoch, log)
    return (time.process_time() - began) / calls


def measure_here(rows: int, features: int) -> dict[str, float]:
    """Return the processor milliseconds per round of each way of training, and of the idle hook's callback alone."""
    import numpy as np
    import xgboost

    import smdebug.xgboost as smd

    rng = np.random.default_rng(0)
    values = rng.standard_normal((rows, features), np.float32)
    labels = (values[:, :5].sum(axis=1) + rng.standard_normal(rows) > 0).astype(np.float32)
    held_out = rows // 5
    data = xgboost.DMatrix(values[held_out:], labels[held_out:])
    other = xgboost.DMatrix(values[:held_out], labels[:held_out])
    # Even the SHAP values of a few rows take longer than the round.
    explained = other.slice(list(range(100)))
    folder = Path(tempfile.mkdtemp())

    def hook(name: str, interval: int, *collections: str) -> Any:
        return smd.Hook(
            str(folder / name),
            include_collections=collections,
            save_config=smd.SaveConfig(save_interval=interval),
            validation_data=other,
            train_data=explained,
        )

    everything = ("predictions", "labels", "feature_importance", "trees")
    with Path(os.devnull).open("w") as nowhere:
        ways: dict[str, list[Any]] = {
            "bare": [],
            "idle": [hook("idle", 10**9, *everything)],
            "metrics": [hook("metrics", 1)],
            "save": [hook("save", 1, *everything)],
            "shap": [hook("shap", 1, "average_shap")],
            "monitor": [xgboost.callback.EvaluationMonitor(logger=lambda text: print(text, file=nowhere))],
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        try:
            # The ways take turns, so that temporary load on the machine affects all of them.
            for _ in range(REPEATS):
                for name, callbacks in ways.items():
                    times[name].append(time_training(data, other, callbacks))
            answers = {f"{name}_ms": 1e3 * statistics.median(values) for name, values in times.items()}
            return {**answers, "idle_call_ms": 1e3 * measure_call(data, ways["idle"][0])}
        finally:
            for callbacks in ways.values():
                for callback in callbacks:
                    if isinstance(callback, smd.Hook):
                        callback.close()
            shutil.rmtree(folder, ignore_errors=True)


def run_script(arguments: tuple[str, ...]) -> dict[str, float]:
    """Run this file as a script in a separate process, and return its output."""
    from benchmarks.shared import scratch

    return scratch.run_script([sys.executable, __file__, *arguments], {"PYTHONPATH": str(Path(__file__).parents[2])})


def measure() -> Iterator[str]:
    for size, arguments in SIZES.items():
        answers = run_script(arguments)
        bare = answers["bare_ms"]
        yield f"{size} ({' '.join(arguments)})"
        yield f"{'bare round':<44}{bare:>9.3f} ms"
        share = 100 * answers["idle_call_ms"] / bare
        yield f"{'idle hook: its callback':<44}{answers['idle_call_ms']:>9.4f} ms{share:>9.2f} %   goal < 1 %"
        for way, shown in (
            ("idle", "idle hook: the round with it"),
            ("monitor", "XGBoost's EvaluationMonitor"),
            ("metrics", "saving metrics every round"),
            ("save", "... and predictions, importances, trees"),
            ("shap", "saving average_shap of 100 rows every round"),
        ):
            cost = answers[f"{way}_ms"] - bare
            yield f"{shown:<44}{cost:>+9.3f} ms{100 * cost / bare:>+9.2f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000, help="rows of data, a fifth of them held out")
    parser.add_argument("--features", type=int, default=30)
    options = parser.parse_args()
    sys.stdout.write(f"\n{json.dumps(measure_here(options.rows, options.features))}\n")


if __name__ == "__main__":
    main()
