"""Hook cost of a Keras step in graph mode, beside Keras' TensorBoard callback.

That callback writes histograms of weights once an epoch, so what saving costs is compared in epochs of one step. As a
script it prints one JSON line: milliseconds a step of each way of training.

    python benchmarks/hooks/hook_cost_keras.py --width 512 --depth 4
"""

import argparse
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPEATS = 7
# An idle hook costs less than the difference between two trainings. It is measured by many short trainings in random
# order.
IDLE_TURNS = 40
STEPS = 50
SIZES = {"small tensors": ("--width", "64", "--depth", "20"), "large tensors": ("--width", "512", "--depth", "6")}
BATCH = 64


def build_model(width: int, depth: int) -> Any:
    import keras

    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(width, activation="relu") for _ in range(depth)]
    model = keras.Sequential([keras.Input((width,)), *layers, keras.layers.Dense(10)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(1e-3), loss=loss)
    return model


def time_fit(model: Any, data: Any, callbacks: list[Any], *, steps: int, epochs: int) -> float:
    """Return the seconds per step, without the first epoch."""
    import keras

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        began = 0.0

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
            self.began = self.began or time.perf_counter()

    clock = Clock()
    arguments = {"steps_per_epoch": steps, "epochs": epochs + 1, "verbose": 0, "shuffle": False}
    model.fit(data, callbacks=[*callbacks, clock], **arguments)
    return (time.perf_counter() - clock.began) / (steps * epochs)


def time_call(hook: Any, model: Any) -> float:
    """Return the seconds of the idle hook's callback alone, which are too short to measure in a training."""
    hook.set_model(model)
    calls = 5000
    began = time.perf_counter()
    for batch in range(calls):
        hook.on_train_batch_begin(batch)
    return (time.perf_counter() - began) / calls


def measure_here(width: int, depth: int) -> dict[str, float]:
    """Return the milliseconds per step of each way of training, and of the idle hook's callback alone."""
    import keras
    import numpy as np
    import tensorflow as tf

    import smdebug.tensorflow as smd

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    generator = np.random.default_rng(0)
    images = generator.standard_normal((BATCH, width), np.float32)
    data = tf.data.Dataset.from_tensors((images, generator.integers(0, 10, BATCH))).repeat()
    folder = Path(tempfile.mkdtemp())
    hooks = []

    def hook(name: str, interval: int, *collections: str) -> Any:
        config = smd.SaveConfig(save_interval=interval)
        made = smd.KerasHook(str(folder / name), include_collections=collections, save_config=config)
        hooks.append(made)
        return made

    def tensorboard(turn: int) -> list[Any]:
        log_dir = str(folder / f"tensorboard-{turn}")
        return [keras.callbacks.TensorBoard(log_dir, histogram_freq=1, write_graph=False)]

    def always(*callbacks: Any) -> Callable[[int], list[Any]]:
        return lambda _: list(callbacks)

    saved = ("weights", "biases", "gradients")
    makers = {
        "bare": always(),
        "nothing": always(keras.callbacks.Callback()),
        "idle": always(hook("idle", 10**9, *saved)),
        "save": always(hook("save", 1, *saved)),
        "weights": always(hook("weights", 1, *saved[:2])),
        "tensorboard": tensorboard,
    }
    # The location of a model in memory changes its speed by some per cent, so these three ways train the same model.
    shared = build_model(width, depth)
    alike = ("bare", "nothing", "idle")
    ways = {name: (shared if name in alike else build_model(width, depth), make) for name, make in makers.items()}
    steps: dict[str, list[float]] = {name: [] for name in alike}
    epochs: dict[str, list[float]] = {name: [] for name in ways if name not in ("nothing", "idle")}
    order, shuffle = list(steps), random.Random(0).shuffle
    try:
        # The ways take turns, so that temporary load on the machine affects all of them.
        for turn in range(IDLE_TURNS):
            shuffle(order)
            for name in order:
                model, make = ways[name]
                steps[name].append(time_fit(model, data, make(turn), steps=STEPS, epochs=1))
        for turn in range(REPEATS):
            for name in epochs:
                model, make = ways[name]
                epochs[name].append(time_fit(model, data, make(turn), steps=1, epochs=8))
                # The files are removed, because they are in memory and would fill it.
                for written in folder.iterdir():
                    shutil.rmtree(written)
        answers = {f"{name}_ms": 1e3 * statistics.median(values) for name, values in steps.items()}
        answers |= {f"{name}_epoch_ms": 1e3 * statistics.median(values) for name, values in epochs.items()}
        return {**answers, "idle_call_ms": 1e3 * time_call(hooks[0], ways["idle"][0])}
    finally:
        for made in hooks:
            made.close()
        shutil.rmtree(folder, ignore_errors=True)


def measure() -> Iterator[str]:
    from benchmarks.shared.scratch import run_script
    from benchmarks.shared.tensorboard import build_tensorboard

    path = os.pathsep.join((str(Path(__file__).parents[2]), str(build_tensorboard())))
    for size, arguments in SIZES.items():
        given = {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2"}
        answers = run_script([sys.executable, __file__, *arguments], given)
        bare, bare_epoch = answers["bare_ms"], answers["bare_epoch_ms"]
        yield f"{size} ({' '.join(arguments)})"
        yield f"{'bare step':<46}{bare:>9.3f} ms"
        share = 100 * answers["idle_call_ms"] / bare
        yield f"{'idle hook: its callback':<46}{answers['idle_call_ms']:>9.4f} ms{share:>9.2f} %   goal < 1 %"
        for way, shown in (
            ("idle", "idle hook: the step with it"),
            ("nothing", "a keras.callbacks.Callback, likewise"),
        ):
            cost = answers[f"{way}_ms"] - bare
            yield f"{shown:<46}{cost:>+9.3f} ms{100 * cost / bare:>+9.2f} %"
        yield f"{'bare epoch of one step':<46}{bare_epoch:>9.3f} ms"
        tensorboard = answers["tensorboard_epoch_ms"] - bare_epoch
        yield f"{'... TensorBoard(histogram_freq=1)':<46}{tensorboard:>+9.3f} ms"
        for way, shown in (("save", "... saving weights and gradients"), ("weights", "... saving weights alone")):
            cost = answers[f"{way}_epoch_ms"] - bare_epoch
            goal = "   goal <= 0.33" if way == "save" else ""
            yield f"{shown:<46}{cost:>+9.3f} ms{cost / tensorboard:>9.2f} of TensorBoard's{goal}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=512, help="neurons a layer")
    parser.add_argument("--depth", type=int, default=6, help="layers before the last one")
    options = parser.parse_args()
    sys.stdout.write(f"\n{json.dumps(measure_here(options.width, options.depth))}\n")


if __name__ == "__main__":
    main()
