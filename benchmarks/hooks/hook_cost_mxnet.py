"""Hook cost of a Gluon step, beside `mx.nd.save` and the real smdebug 1.0.34.

As a script it measures whichever `smdebug` its interpreter imports and prints one JSON line:

    python benchmarks/hooks/hook_cost_mxnet.py --width 32 --depth 20

`measure` runs it in MXNet's own environment with ours, and in another with the real one, in turn, and compares.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROUNDS = 3
BLOCK = 15
PAIRS = 300
# The first steps of a block allocate memory that later steps reuse.
WARM_UP = 3
SIZES = {"small tensors": ("--width", "32", "--depth", "20"), "large tensors": ("--width", "512", "--depth", "6")}
REQUIREMENTS = Path(__file__).with_name("requirements-upstream-mxnet.txt")
SAVED = ["weights", "biases", "gradients", "losses"]


class Training:
    """A hybridized network of dense layers and its trainer; a step ends when MXNet has computed it."""

    def __init__(self, width: int, depth: int) -> None:
        import mxnet as mx
        from mxnet import gluon, nd

        mx.random.seed(0)
        self.network = gluon.nn.HybridSequential()
        for _ in range(depth):
            self.network.add(gluon.nn.Dense(width, activation="relu", in_units=width))
        self.network.add(gluon.nn.Dense(10, in_units=width))
        self.network.initialize(mx.init.Xavier())
        self.network.hybridize()
        self.loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
        self.trainer = gluon.Trainer(self.network.collect_params(), "sgd", {"learning_rate": 1e-3})
        self.images = nd.random.normal(shape=(64, width))
        self.labels = nd.random.randint(0, 10, (64,)).astype("float32")
        self.after: Callable[[], None] = lambda: None

    def step(self) -> None:
        from mxnet import autograd, nd

        with autograd.record():
            loss = self.loss_function(self.network(self.images), self.labels)
        loss.backward()
        self.trainer.step(64)
        self.after()
        nd.waitall()

    def time_steps(self, steps: int) -> list[float]:
        """Return the seconds of each step, without the first steps."""
        times = []
        for _ in range(steps):
            began = time.perf_counter()
            self.step()
            times.append(time.perf_counter() - began)
        return times[WARM_UP:]


def compare_steps(bare: Training, other: Training, pairs: int) -> float:
    """Return the median difference between a step of `other` and an adjacent step of `bare`, in seconds.

    An idle hook takes microseconds in a step of milliseconds, which only a comparison of adjacent steps can measure.
    """
    differences = []
    for number in range(pairs):
        # The second way benefits from caches that the first has filled, so the order alternates.
        order = (bare, other) if number % 2 else (other, bare)
        took = {training: training.time_steps(WARM_UP + 1)[0] for training in order}
        differences.append(took[other] - took[bare])
    return statistics.median(differences)


def save_by_hand(training: Training, folder: Path) -> None:
    """Make a training save its steps without smdebug: a forward hook keeps the loss, and each step writes one file."""
    from mxnet import nd

    kept: list[Any] = []
    training.loss_function.register_forward_hook(lambda _block, _inputs, loss: kept.append(loss))
    parameters = training.network.collect_params()

    def save() -> None:
        arrays = {name: parameter.data() for name, parameter in parameters.items()}
        arrays |= {f"gradient/{name}": parameter.grad() for name, parameter in parameters.items()}
        nd.save(str(folder / f"{time.perf_counter_ns()}.params"), {**arrays, "loss": kept.pop()})

    training.after = save


def measure_here(width: int, depth: int, steps: int) -> dict[str, float]:
    """Return the milliseconds per step of each way of training."""
    import smdebug.mxnet as smd

    folder = Path(tempfile.mkdtemp())
    hooks = []

    def hooked(name: str, interval: int, **options: Any) -> Training:
        training = Training(width, depth)
        made = smd.Hook(out_dir=str(folder / name), save_config=smd.SaveConfig(save_interval=interval), **options)
        made.register_block(training.network)
        made.register_block(training.loss_function)
        hooks.append(made)
        return training

    # Without std, which upstream cannot compute for MXNet.
    operations = smd.ReductionConfig(reductions=["min", "max", "mean"], norms=["l1", "l2"], abs_reductions=["mean"])
    ways = {
        "bare": Training(width, depth),
        "by_hand": Training(width, depth),
        "idle": hooked("idle", 10**6, include_collections=["losses"]),
        "save": hooked("save", 1, include_collections=SAVED),
        "everything": hooked("everything", 1, save_all=True),
        "reduce": hooked("reduce", 1, include_collections=SAVED, reduction_config=operations),
    }
    save_by_hand(ways["by_hand"], folder)
    times: dict[str, list[float]] = {name: [] for name in ways if name != "idle"}
    try:
        # The ways take turns, so that temporary load on the machine affects all of them.
        for _ in range(max(1, steps // BLOCK)):
            for name in times:
                times[name] += ways[name].time_steps(BLOCK + WARM_UP)
        answers = {name: statistics.median(values) for name, values in times.items()}
        answers["idle"] = answers["bare"] + compare_steps(ways["bare"], ways["idle"], PAIRS)
        for made in hooks:
            made.close()
        return {name: 1e3 * seconds for name, seconds in answers.items()}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_script(python: str, arguments: tuple[str, ...]) -> dict[str, float]:
    """Run this script in an interpreter, and return its output."""
    from benchmarks.shared import scratch

    command = [python, "-W", "ignore", __file__, *arguments]
    return scratch.run_script(command, {"PYTHONPATH": None, "OMP_NUM_THREADS": "1"})


def compare(ours: dict[str, float], theirs: dict[str, float]) -> Iterator[str]:
    """Yield one line per measurement: our value, upstream's value, the ratio and the goal."""

    def cost(answers: dict[str, float], way: str) -> float:
        return answers[way] - answers["bare"]

    yield f"{'bare step':<34}{ours['bare']:>9.2f} ms{theirs['bare']:>11.2f} ms"
    idle = [100 * cost(answers, "idle") / answers["bare"] for answers in (ours, theirs)]
    yield f"{'idle hook, of the step':<34}{idle[0]:>9.1f} % {idle[1]:>11.1f} %   goal < 1 %"
    for way, shown in (
        ("by_hand", "weights, gradients, loss by nd.save"),
        ("save", "the same, saved by the hook"),
        ("everything", "save_all"),
        ("reduce", "reductions"),
    ):
        mine, other = cost(ours, way), cost(theirs, way)
        ratio = "" if way == "by_hand" else f"{other / max(mine, 1e-3):>11.1f} x"
        yield f"{shown:<34}{mine:>9.2f} ms{other:>11.2f} ms{ratio}"


def measure() -> Iterator[str]:
    from benchmarks.shared.environments import build_upstream
    from container_runtime.images.catalogue import ImageCatalogue
    from container_runtime.process.environments import build_environment

    definition = next(found for found in ImageCatalogue() if found.name == "mxnet-training")
    pythons = {"ours": str(build_environment(definition).python), "theirs": str(build_upstream(REQUIREMENTS))}
    for size, arguments in SIZES.items():
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in pythons}
        for _ in range(ROUNDS):
            for name, python in pythons.items():
                rounds[name].append(run_script(python, arguments))
        medians = {
            name: {key: statistics.median(answers[key] for answers in done) for key in done[0]}
            for name, done in rounds.items()
        }
        yield f"{size} ({' '.join(arguments)}){'':<12}ours   smdebug 1.0.34"
        yield from compare(medians["ours"], medians["theirs"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=512, help="neurons a layer")
    parser.add_argument("--depth", type=int, default=6, help="layers before the last one")
    parser.add_argument("--steps", type=int, default=60, help="steps measured of each way")
    options = parser.parse_args()
    sys.stdout.write(f"\n{json.dumps(measure_here(options.width, options.depth, options.steps))}\n")


if __name__ == "__main__":
    main()
