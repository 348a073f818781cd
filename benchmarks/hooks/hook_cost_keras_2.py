"""Hook cost of Keras 2, sessions and estimators, beside the real smdebug 1.0.34.

In the environment of the image of TensorFlow 2.12, where both run. As a script it measures whichever `smdebug` its
interpreter imports and prints one JSON line:

    python benchmarks/hooks/hook_cost_keras_2.py --kind fit --width 32 --depth 20

`measure` runs it with ours and with the real one, in turn, and compares.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

ROUNDS = 3
BATCH = 64
# The first steps of a block allocate memory that later steps reuse. In the first block, TensorFlow also compiles code.
WARM_UP = 3
BLOCK = 20
# Seconds during which two ways take turns, because an idle hook costs less than the difference between two blocks.
SECONDS = {"save": 3.0, "idle": 6.0}
FEWEST_TURNS = 3
INTERVALS = {"idle": 10**9, "save": 1}
KINDS = ("fit", "session", "tape", "estimator")
# The hook methods that the framework calls at each step.
CALLBACKS = {"fit": ("on_train_batch_begin", "on_train_batch_end"), "session": ("before_run", "after_run")}
# The cost of large tensors is that of writing them, which does not depend on the kind of training.
LARGE_KINDS = ("fit", "session")
SIZES = {"small tensors": ("--width", "32", "--depth", "20"), "large tensors": ("--width", "512", "--depth", "6")}
REQUIREMENTS = Path(__file__).parents[2] / "tests" / "interop" / "requirements-upstream-alone.txt"
# Upstream captures the gradients of `fit` only with AWS's own TensorFlow.
SAVED = {kind: ("weights", "biases", "losses", *(("gradients",) if kind != "fit" else ())) for kind in KINDS}


class Training(ABC):
    """One way to train a network of dense layers."""

    @abstractmethod
    def time_steps(self, steps: int) -> list[float]:
        """Return the seconds of each step, without the first steps."""


class FitTraining(Training):
    """A training with `fit`, timed from the end of one batch to the end of the next."""

    def __init__(self, model: Any, data: Any, callbacks: Sequence[Any]) -> None:
        import tensorflow as tf

        ends: list[float] = []

        class Clock(tf.keras.callbacks.Callback):  # type: ignore[misc]
            # Without this flag, Keras would wait for the numbers of each batch to pass them to the callback.
            _supports_tf_logs = True

            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
                ends.append(time.perf_counter())

        self._model, self._data, self._ends = model, data, ends
        self._callbacks = [*callbacks, Clock()]

    def time_steps(self, steps: int) -> list[float]:
        self._ends.clear()
        self._model.fit(self._data, steps_per_epoch=steps, verbose=0, shuffle=False, callbacks=self._callbacks)
        return [after - before for before, after in zip(self._ends, self._ends[1:], strict=False)][WARM_UP:]


class TapeTraining(Training):
    """A custom training loop with a tape; `hook` captures the steps, and `save` is called after each step."""

    def __init__(
        self,
        model: Any,
        batch: tuple[Any, Any],
        *,
        hook: Any = None,
        save: Callable[[Any, Sequence[Any]], object] = lambda _loss, _gradients: None,
    ) -> None:
        import tensorflow as tf

        optimizer = tf.keras.optimizers.legacy.SGD(1e-3)
        self._model, self._batch, self._hook, self._save = model, batch, hook, save
        self._optimizer = optimizer if hook is None else hook.wrap_optimizer(optimizer)
        self._loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def _step(self) -> None:
        import tensorflow as tf

        images, labels = self._batch
        tape = tf.GradientTape()
        with tape if self._hook is None else self._hook.wrap_tape(tape) as tape:
            loss = self._loss(labels, self._model(images, training=True))
        gradients = tape.gradient(loss, self._model.trainable_variables)
        self._optimizer.apply_gradients(zip(gradients, self._model.trainable_variables, strict=True))
        self._save(loss, gradients)

    def time_steps(self, steps: int) -> list[float]:
        times = []
        for _ in range(steps):
            began = time.perf_counter()
            self._step()
            times.append(time.perf_counter() - began)
        return times[WARM_UP:]


class Network:
    """A network in a TensorFlow 1 graph."""

    def __init__(self, width: int, depth: int, images: Any, labels: Any, wrap: Callable[[Any], Any]) -> None:
        import tensorflow as tf

        v1 = tf.compat.v1
        v1.set_random_seed(0)
        for number in range(depth):
            images = v1.layers.dense(images, width, activation=tf.nn.relu, name=f"hidden{number}")
        self.loss = v1.losses.sparse_softmax_cross_entropy(labels, v1.layers.dense(images, 10, name="output"))
        optimizer = wrap(v1.train.GradientDescentOptimizer(1e-3))
        pairs = optimizer.compute_gradients(self.loss)
        self.train = optimizer.apply_gradients(pairs, v1.train.get_or_create_global_step())
        self.values = [self.loss, *(value for pair in pairs for value in pair)]


class SessionTraining(Training):
    """A training in a monitored session; `more` returns fetches in addition to the network's update."""

    def __init__(
        self,
        size: tuple[int, int],
        batch: tuple[Any, Any],
        hooks: Sequence[Any],
        *,
        more: Callable[[Network], list[Any]] = lambda _network: [],
        wrap: Callable[[Any], Any] = lambda optimizer: optimizer,
    ) -> None:
        import tensorflow as tf

        v1 = tf.compat.v1
        with tf.Graph().as_default():
            network = Network(*size, tf.constant(batch[0]), tf.constant(batch[1]), wrap)
            self._fetches = [network.train, *more(network)]
            self._session = v1.train.MonitoredTrainingSession(hooks=list(hooks), summary_dir=None)

    def time_steps(self, steps: int) -> list[float]:
        times = []
        for _ in range(steps):
            began = time.perf_counter()
            self._session.run(self._fetches)
            times.append(time.perf_counter() - began)
        return times[WARM_UP:]


class EstimatorTraining(Training):
    """A training with an estimator, which loads a checkpoint each time; timed from the end of one step to the next."""

    def __init__(
        self,
        size: tuple[int, int],
        batch: tuple[Any, Any],
        hooks: Sequence[Any],
        *,
        wrap: Callable[[Any], Any] = lambda optimizer: optimizer,
    ) -> None:
        import tensorflow as tf

        ends: list[float] = []

        class Clock(tf.compat.v1.train.SessionRunHook):  # type: ignore[misc]
            def after_run(self, run_context: Any, run_values: Any) -> None:  # noqa: ARG002
                ends.append(time.perf_counter())

        def describe(features: Any, labels: Any, mode: Any) -> Any:
            network = Network(*size, features, labels, wrap)
            return tf.estimator.EstimatorSpec(mode, loss=network.loss, train_op=network.train)

        # The estimator's own summaries and logs would slow down steps, so they are practically disabled.
        config = tf.estimator.RunConfig(save_summary_steps=10**9, log_step_count_steps=10**9)
        self._estimator = tf.estimator.Estimator(describe, config=config)
        self._read = lambda: tf.data.Dataset.from_tensors(batch).repeat()
        # TensorFlow calls the last hook first.
        self._hooks, self._ends = [*hooks, Clock()], ends

    def time_steps(self, steps: int) -> list[float]:
        self._ends.clear()
        self._estimator.train(self._read, steps=steps, hooks=self._hooks)
        return [after - before for before, after in zip(self._ends, self._ends[1:], strict=False)][WARM_UP:]


class Trainings:
    """Creates the trainings of one kind: bare, with hooks, and with values that the script reads without a hook."""

    def __init__(self, kind: str, width: int, depth: int, folder: Path) -> None:
        import numpy as np

        self._kind, self._size, self._folder = kind, (width, depth), folder
        generator = np.random.default_rng(0)
        self._batch = (generator.standard_normal((BATCH, width), np.float32), generator.integers(0, 10, BATCH))
        # The hooks are created before the first estimator. After it, upstream's hooks fail with
        # "object.__init__() takes exactly one argument".
        self.hooks = {name: self._make_hook(name, interval) for name, interval in INTERVALS.items()}

    def make_bare(self) -> Training:
        return self._make(None, self._shared)

    def make_hooked(self, name: str) -> Training:
        # The location of a model in memory changes its speed by some per cent. Trainings that save nothing share one.
        return self._make(self.hooks[name], None if name == "save" else self._shared)

    def _make_hook(self, name: str, interval: int) -> Any:
        import smdebug.tensorflow as smd

        made = {"session": "SessionHook", "estimator": "EstimatorHook"}.get(self._kind, "KerasHook")
        config = smd.SaveConfig(save_interval=interval)
        hook = getattr(smd, made)(
            str(self._folder / name), include_collections=list(SAVED[self._kind]), save_config=config
        )
        if hasattr(hook, "distribution_strategy") and made != "KerasHook":
            # Upstream does not know the default strategy of this TensorFlow version, and would turn itself off.
            strategies = import_module("smdebug.tensorflow.utils").TFDistributionStrategy
            type(hook)._get_distribution_strategy = lambda _self: strategies.NONE  # noqa: SLF001
            hook.distribution_strategy = strategies.NONE
        hook.set_mode(smd.modes.TRAIN)
        return hook

    def make_idle_of_framework(self) -> Training:
        """Return a training with a callback or hook of the framework that does nothing."""
        import tensorflow as tf

        class Idle(tf.keras.callbacks.Callback):  # type: ignore[misc]
            _supports_tf_logs = True

            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None: ...

            def on_train_batch_end(self, batch: int, logs: Any = None) -> None: ...

        if self._kind == "fit":
            return FitTraining(self._shared, self._data, [Idle()])
        hook = tf.compat.v1.train.SessionRunHook()
        if self._kind == "session":
            return SessionTraining(self._size, self._batch, [hook])
        return EstimatorTraining(self._size, self._batch, [hook])

    def make_by_hand(self) -> Training:
        """Return a training without a hook that converts the same values to arrays, but does not write them."""
        import tensorflow as tf

        if self._kind == "session":
            return SessionTraining(self._size, self._batch, [], more=lambda network: network.values)
        model = self._build_model()
        if self._kind == "tape":
            return TapeTraining(
                model,
                self._batch,
                save=lambda loss, gradients: [value.numpy() for value in (loss, *gradients, *model.variables)],
            )

        class Taker(tf.keras.callbacks.Callback):  # type: ignore[misc]
            def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
                [variable.numpy() for variable in model.variables]

        return FitTraining(model, self._data, [Taker()])

    def _make(self, hook: Any, model: Any = None) -> Training:
        hooks = [] if hook is None else [hook]
        if self._kind == "fit":
            return FitTraining(model or self._build_model(), self._data, hooks)
        if self._kind == "tape":
            return TapeTraining(model or self._build_model(), self._batch, hook=hook)
        of_graph = SessionTraining if self._kind == "session" else EstimatorTraining
        return of_graph(self._size, self._batch, hooks, **({} if hook is None else {"wrap": hook.wrap_optimizer}))

    @cached_property
    def _shared(self) -> Any:
        return self._build_model() if self._kind in ("fit", "tape") else None

    @property
    def _data(self) -> Any:
        import tensorflow as tf

        return tf.data.Dataset.from_tensors(self._batch).repeat()

    def _build_model(self) -> Any:
        import tensorflow as tf

        width, depth = self._size
        tf.keras.utils.set_random_seed(0)
        layers = [tf.keras.layers.Dense(width, activation="relu") for _ in range(depth)]
        model = tf.keras.Sequential([tf.keras.Input((width,)), *layers, tf.keras.layers.Dense(10)])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=tf.keras.optimizers.legacy.SGD(1e-3), loss=loss)
        return model


def compare_blocks(bare: Training, other: Training, seconds: float) -> float:
    """Return the median difference between a step of `other` and one of `bare` in adjacent blocks, in seconds."""
    differences: list[float] = []
    other.time_steps(2 * WARM_UP)
    end = time.perf_counter() + seconds
    # A step with a tape takes tens of milliseconds. In short blocks, load on the machine affects both ways equally.
    block = BLOCK if not isinstance(bare, TapeTraining) else 1
    while len(differences) < FEWEST_TURNS or time.perf_counter() < end:
        # The second way benefits from caches that the first has filled, so the order alternates.
        order = (bare, other) if len(differences) % 2 else (other, bare)
        took = {id(training): statistics.median(training.time_steps(block + WARM_UP + 1)) for training in order}
        differences.append(took[id(other)] - took[id(bare)])
    return statistics.median(differences)


def time_callbacks(training: Training, hook: Any, names: Sequence[str]) -> float:
    """Return the seconds per step of these callbacks of a hook, as the sum of their medians."""
    callbacks = {name: getattr(hook, name) for name in names}
    took: dict[str, list[float]] = {name: [] for name in names}

    def time_one(name: str) -> None:
        callback, times, clock = callbacks[name], took[name], time.perf_counter

        def timed(*arguments: Any) -> Any:
            began = clock()
            try:
                return callback(*arguments)
            finally:
                times.append(clock() - began)

        setattr(hook, name, timed)

    for name in names:
        time_one(name)
    training.time_steps(20 * BLOCK)
    for name, callback in callbacks.items():
        setattr(hook, name, callback)
    return sum(statistics.median(times[WARM_UP:]) for times in took.values())


def measure_here(kind: str, width: int, depth: int) -> dict[str, float]:
    """Return the milliseconds of a bare step, and the additional milliseconds of each other way."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    if kind in ("session", "estimator"):
        tf.compat.v1.disable_v2_behavior()
        tf.compat.v1.logging.set_verbosity("ERROR")
    folder = Path(tempfile.mkdtemp())
    trainings = Trainings(kind, width, depth, folder)
    try:
        bare = trainings.make_bare()
        bare.time_steps(BLOCK)
        answers = {}
        # An estimator starts a new session for each block, in which the cost of an idle hook is too small to measure.
        for name in ("save",) if kind == "estimator" else INTERVALS:
            answers[name] = compare_blocks(bare, trainings.make_hooked(name), SECONDS[name])
        if kind in CALLBACKS:
            hooked = trainings.make_hooked("idle")
            answers["callbacks"] = time_callbacks(hooked, trainings.hooks["idle"], CALLBACKS[kind])
            answers["nothing"] = compare_blocks(bare, trainings.make_idle_of_framework(), SECONDS["idle"])
        if kind != "estimator":
            answers["by_hand"] = compare_blocks(bare, trainings.make_by_hand(), SECONDS["save"])
        answers["bare"] = statistics.median(bare.time_steps(5 * BLOCK))
        for hook in trainings.hooks.values():
            hook.close()
        return {name: 1e3 * seconds for name, seconds in answers.items()} | {"tensors": count_tensors(folder / "save")}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def count_tensors(run: Path) -> int:
    """Return the number of tensors in the newest step of a run."""
    newest = max(run.glob("index/*/*.json"), key=lambda path: path.name)
    return len(json.loads(newest.read_text())["tensor_payload"])


def compare(kind: str, ours: dict[str, float], theirs: dict[str, float]) -> Iterator[str]:
    """Yield one line per measurement: our value, upstream's value, the ratio and the goal."""
    yield f"{kind + ': a bare step':<42}{ours['bare']:>9.2f} ms{theirs['bare']:>11.2f} ms"
    ways = {
        "idle": "... with an idle hook",
        "callbacks": "    its callbacks alone",
        "nothing": "... with TensorFlow's own that does nothing",
    }
    for way, shown in ways.items():
        if way in ours:
            shares = [100 * answers[way] / answers["bare"] for answers in (ours, theirs)]
            goal = "   goal < 1 %" if way == "idle" else ""
            yield f"{shown:<42}{shares[0]:>+9.2f} % {shares[1]:>+11.2f} %{goal}"
    ratio = theirs["save"] / max(ours["save"], 1e-3)
    yield f"{'... saving':<42}{ours['save']:>+9.2f} ms{theirs['save']:>+11.2f} ms{ratio:>9.1f} x"
    yield f"{'    tensors a step':<42}{ours['tensors']:>9.0f}   {theirs['tensors']:>11.0f}"
    if "by_hand" in ours:
        yield f"{'... taking the same values as numpy':<42}{ours['by_hand']:>+9.2f} ms{theirs['by_hand']:>+11.2f} ms"


def measure() -> Iterator[str]:
    from benchmarks.shared.environments import build_packages
    from benchmarks.shared.scratch import run_script
    from container_runtime.images.catalogue import ImageCatalogue
    from container_runtime.process.environments import build_environment

    definition = next(found for found in ImageCatalogue() if found.name == "tensorflow-training-2.12")
    python = build_environment(definition).python
    libraries = {"ours": None, "theirs": str(build_packages(REQUIREMENTS, python))}
    for size, arguments in SIZES.items():
        yield f"{size} ({' '.join(arguments)}){'':<11}ours   smdebug 1.0.34"
        for kind in KINDS if size.startswith("small") else LARGE_KINDS:
            rounds: dict[str, list[dict[str, float]]] = {whose: [] for whose in libraries}
            for _ in range(ROUNDS):
                for whose, path in libraries.items():
                    command = [str(python), "-W", "ignore", __file__, "--kind", kind, *arguments]
                    rounds[whose].append(run_script(command, {"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}))
            medians = {
                whose: {key: statistics.median(answers[key] for answers in done) for key in done[0]}
                for whose, done in rounds.items()
            }
            yield from compare(kind, medians["ours"], medians["theirs"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="fit")
    parser.add_argument("--width", type=int, default=512, help="neurons a layer")
    parser.add_argument("--depth", type=int, default=6, help="layers before the last one")
    options = parser.parse_args()
    sys.stdout.write(f"\n{json.dumps(measure_here(options.kind, options.width, options.depth))}\n")


if __name__ == "__main__":
    main()
