"""Hook cost of a training step, and of reading, beside the real smdebug 1.0.34.

As a script it measures whichever `smdebug` its interpreter imports and prints one JSON line:

    python benchmarks/hooks/hook_cost.py --width 32 --depth 20

`measure` runs it with ours and with the real one, in turn, and compares.
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

ROUNDS = 3
TURN = 8
# A hook that saves changes the processor's cache, which costs more than an idle hook. The idle hook is therefore
# measured only in turn with the bare step, for about this number of seconds.
IDLE_SECONDS = 5.0
SIZES = {"small tensors": ("--width", "32", "--depth", "20"), "large tensors": ("--width", "512", "--depth", "6")}


def make_step(model: Any, loss_function: Any, width: int, after: Callable[[], None]) -> Callable[[], float]:
    """Return a function that trains one step and returns its seconds."""
    import torch

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs, labels = torch.randn(64, width), torch.randint(0, 10, (64,))

    def step() -> float:
        began = time.perf_counter()
        optimizer.zero_grad()
        loss_function(model(inputs), labels).backward()
        optimizer.step()
        after()
        return time.perf_counter() - began

    return step


def time_in_turn(ways: dict[str, Callable[[], float]], turns: int) -> dict[str, float]:
    """Return the median milliseconds per step of each way, which run a few steps in turn, in random order."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    order, shuffle = list(ways), random.Random(0).shuffle
    for _ in range(turns):
        shuffle(order)
        for name in order:
            # The first step of a turn is not counted: the processor's cache contains memory of the previous way.
            times[name] += [ways[name]() for _ in range(TURN + 1)][1:]
    return {name: 1e3 * statistics.median(values) for name, values in times.items()}


def time_callbacks(model: Any, times: int = 1_000) -> float:
    """Return the seconds per step of a hook's callbacks, without torch's own work; the best of 20 rounds."""
    import torch
    from torch.optim.optimizer import _global_optimizer_post_hooks

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    inputs = (torch.zeros(1),)
    hooks = list(model._forward_pre_hooks.values())  # noqa: SLF001 -- there is no other way to call them alone
    # The callback that was registered first is that of the idle hook; smdebug 1.0.34 registers none.
    after = list(_global_optimizer_post_hooks.values())[:1]
    rounds = []
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(times):
            for hook in hooks:
                hook(model, inputs)
            for hook in after:
                hook(optimizer, (), {})
        rounds.append((time.perf_counter() - began) / times)
    return min(rounds)


def read(run: str) -> dict[str, float]:
    """Measure the opening of a run, the reading of all its values, and the reduction of every gradient on reading."""
    from smdebug.trials import create_trial

    began = time.perf_counter()
    trial = create_trial(run)
    opened = time.perf_counter()
    # The first request detects that the run has ended, for which upstream sleeps one second.
    trial.steps()
    asked = time.perf_counter()
    size = 0
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for step in tensor.steps():
            size += tensor.value(step).nbytes
    done = time.perf_counter()
    for name in trial.tensor_names(collection="gradients"):
        tensor = trial.tensor(name)
        for step in tensor.steps():
            tensor.reduction_value(step, "mean", abs=True)
    reduced = time.perf_counter()
    return {
        "open_s": opened - began,
        "first_question_s": asked - opened,
        "read_mb_per_s": size / (done - asked) / 1e6,
        "reductions_on_read_s": reduced - done,
    }


def measure_here(width: int, depth: int, steps: int) -> dict[str, float]:
    """Return the milliseconds per step of each way of training, and the measurements of `read`."""
    import torch

    import smdebug.pytorch as smd

    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    hooks = []

    def build() -> tuple[Any, Any]:
        torch.manual_seed(0)
        layers: list[Any] = []
        for _ in range(depth):
            layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10)), torch.nn.CrossEntropyLoss()

    def hook(name: str, interval: int, **options: Any) -> tuple[Any, Any]:
        model, loss_function = build()
        made = smd.Hook(out_dir=str(folder / name), save_config=smd.SaveConfig(save_interval=interval), **options)
        made.register_module(model)
        made.register_loss(loss_function)
        hooks.append(made)
        return model, loss_function

    raw_model, raw_loss = build()

    def write_raw() -> None:
        with (folder / f"raw-{time.perf_counter_ns()}").open("wb") as file:
            for parameter in raw_model.parameters():
                file.write(memoryview(parameter.detach().numpy()).cast("B"))
                file.write(memoryview(parameter.grad.numpy()).cast("B"))

    own_model, own_loss = build()
    seen: dict[str, Any] = {}

    def write_by_torch() -> None:
        """Save a step as a user would without smdebug: with a torch hook for the loss, and torch.save."""
        seen["weights"] = own_model.state_dict()
        seen["gradients"] = {name: parameter.grad for name, parameter in own_model.named_parameters()}
        torch.save(seen, folder / f"torch-{time.perf_counter_ns()}")

    own_loss.register_forward_hook(lambda _module, _inputs, output: seen.update(loss=output.detach()))

    nothing: Callable[[], None] = lambda: None  # noqa: E731 -- one of two of its kind
    saved = ["weights", "biases", "gradients", "losses"]
    operations = smd.ReductionConfig(
        reductions=["min", "max", "mean", "std"], norms=["l1", "l2"], abs_reductions=["mean"]
    )
    bare, idle = build(), hook("idle", 10**6, include_collections=["losses"])
    both = {"bare": make_step(*bare, width, nothing), "idle": make_step(*idle, width, nothing)}
    try:
        first = time_in_turn(both, 5)
        quiet = time_in_turn(both, int(1e3 * IDLE_SECONDS / (first["bare"] + first["idle"]) / (TURN + 1)))
        # These hooks are created only now, because every optimizer step calls all existing hooks.
        ways = {
            "bare": both["bare"],
            "raw": make_step(raw_model, raw_loss, width, write_raw),
            "torch": make_step(own_model, own_loss, width, write_by_torch),
            "save": make_step(*hook("save", 1, include_collections=saved), width, nothing),
            "reduce": make_step(
                *hook("reduce", 1, include_collections=saved, reduction_config=operations), width, nothing
            ),
        }
        answers = {f"{name}_ms": value for name, value in time_in_turn(ways, max(1, steps // TURN)).items()}
        callbacks_us = 1e6 * time_callbacks(idle[0])
        for made in hooks:
            made.close()
        answers["idle_per_cent"] = 100 * (quiet["idle"] / quiet["bare"] - 1)
        return {**answers, "callbacks_us": callbacks_us, **read(str(folder / "save"))}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_script(python: str, path: str | None, arguments: tuple[str, ...]) -> dict[str, float]:
    """Run this script in another interpreter, with `path` as its PYTHONPATH, and return its output."""
    from benchmarks.shared import scratch

    return scratch.run_script([python, __file__, *arguments], {"PYTHONPATH": path})


def compare(ours: dict[str, float], theirs: dict[str, float], *, small: bool) -> Iterator[str]:
    """Yield one line per measurement: our value, upstream's value, the ratio and the goal."""

    def cost(answers: dict[str, float], way: str) -> float:
        return answers[f"{way}_ms"] - answers["bare_ms"]

    yield f"{'bare step':<26}{ours['bare_ms']:>9.2f} ms{theirs['bare_ms']:>11.2f} ms"
    idle = [answers["idle_per_cent"] for answers in (ours, theirs)]
    yield f"{'idle hook, of the step':<26}{idle[0]:>9.2f} % {idle[1]:>11.2f} %   goal < 1 %"
    goals = {"save": "15 x" if small else "", "reduce": "20 x"}
    for way, shown in (("save", "a saved step"), ("reduce", "a step with reductions")):
        mine, other = max(cost(ours, way), 1e-3), cost(theirs, way)
        goal = f"  goal {goals[way]}" if goals[way] else ""
        yield f"{shown:<26}{mine:>9.2f} ms{other:>11.2f} ms{other / mine:>11.1f} x{goal}"
    by_torch = cost(ours, "torch")
    ratio = by_torch / max(cost(ours, "save"), 1e-3)
    yield f"{'the same, by torch.save':<26}{by_torch:>9.2f} ms{'':>14}{ratio:>11.1f} x"
    yield f"{'callbacks of an idle step':<26}{ours['callbacks_us']:>9.2f} us{theirs['callbacks_us']:>11.2f} us"
    if not small:
        raw = [cost(answers, "save") / cost(answers, "raw") for answers in (ours, theirs)]
        shown = "a saved step, of raw writing"
        yield f"{shown:<26}{raw[0]:>9.2f}   {raw[1]:>11.2f}         goal <= 1.15"
    for key, shown in (
        ("open_s", "opening"),
        ("first_question_s", "first question"),
        ("reductions_on_read_s", "reductions when read"),
    ):
        mine, other = 1e3 * ours[key], 1e3 * theirs[key]
        yield f"{shown:<26}{mine:>9.2f} ms{other:>11.2f} ms{other / mine:>11.1f} x"
    mine, other = (answers["read_mb_per_s"] for answers in (ours, theirs))
    goal = "10 x" if small else "memory"
    yield f"{'reading':<26}{mine:>7.0f} MB/s{other:>9.0f} MB/s{mine / other:>9.1f} x  goal {goal}"


def measure() -> Iterator[str]:
    from benchmarks.shared.environments import build_upstream

    original = str(build_upstream())
    checkout = str(Path(__file__).parents[2])
    for size, arguments in SIZES.items():
        rounds: dict[str, list[dict[str, float]]] = {"ours": [], "theirs": []}
        for _ in range(ROUNDS):
            rounds["ours"].append(run_script(sys.executable, checkout, arguments))
            rounds["theirs"].append(run_script(original, None, arguments))
        medians = {
            name: {key: statistics.median(answers[key] for answers in done) for key in done[0]}
            for name, done in rounds.items()
        }
        yield f"{size} ({' '.join(arguments)}){'':<4}ours   smdebug 1.0.34"
        yield from compare(medians["ours"], medians["theirs"], small=size.startswith("small"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=512, help="neurons a layer")
    parser.add_argument("--depth", type=int, default=6, help="layers before the last one")
    parser.add_argument("--steps", type=int, default=60, help="steps measured of each way")
    options = parser.parse_args()
    os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")
    sys.stdout.write(f"\n{json.dumps(measure_here(options.width, options.depth, options.steps))}\n")


if __name__ == "__main__":
    main()
