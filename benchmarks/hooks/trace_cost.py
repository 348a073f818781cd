"""Tracing cost of a training step, beside the bare step.

The benchmark measures in turn the bare step, a hook without tracing, and traced steps and passes.

Run as a script, this file measures in one process and prints one JSON line.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STEP_SECONDS = 0.005
STEPS = 1_500
# For Keras: number of turns, and batches per turn.
TURNS, BATCHES = 40, 100
FRAMEWORKS = {"pytorch": "PyTorch", "keras": "Keras"}


def measure() -> Iterator[str]:
    """Yield the cost of the hooks as a share of a step of 5 ms, with tracing off and on."""
    for framework, name in FRAMEWORKS.items():
        command = [sys.executable, str(Path(__file__)), framework]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "TF_CPP_MIN_LOG_LEVEL": "2"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        yield f"{name}, off, in a job that may be profiled: {1e6 * found.pop('off'):.1f} µs more than outside of a job"
        for way, seconds in found.items():
            share = seconds / STEP_SECONDS
            yield f"{name}, {way}: {1e6 * seconds:.1f} µs more a step, {share:.2%} of 5 ms (at most 2%)"


def configure(folder: str, way: str) -> None:
    """Configure the next hook for one way: outside a job, in a job without tracing, or in a job with tracing."""
    os.environ.pop("SMPROFILER_CONFIG_PATH", None)
    parameters = {"LocalPath": str(Path(folder, way)), "FileOpenFailThreshold": "50"}
    if way == "on, with passes":
        parameters["DataloaderProfilingConfig"] = str({"StartStep": 0, "NumSteps": 10**9})
    if way != "outside":
        path = Path(folder, f"{way}.json")
        if way != "off":
            path.write_text(json.dumps({"ProfilingParameters": parameters}))
        os.environ["SMPROFILER_CONFIG_PATH"] = str(path)


def run_keras() -> None:
    """Measure the steps of `fit` with a small model; passes are traced only in steps of DataloaderProfilingConfig."""
    import random

    import numpy as np
    import tensorflow as tf

    import smdebug.tensorflow as smd
    from benchmarks.hooks.hook_cost_keras import build_model

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    generator = np.random.default_rng(0)
    images = generator.standard_normal((4, 8), np.float32)
    data = tf.data.Dataset.from_tensors((images, generator.integers(0, 10, 4))).repeat()
    with TemporaryDirectory() as folder:
        hooks = {}
        for way in ("outside", "off", "on", "on, with passes"):
            configure(folder, way)
            hooks[way] = smd.KerasHook(str(Path(folder, f"run-{way}")), include_collections=())
        # The location of a model in memory changes its speed, so all ways train the same model.
        model = build_model(8, 1)
        times: dict[str, list[float]] = {way: [] for way in hooks}
        order = list(hooks)
        for _ in range(TURNS):
            random.shuffle(order)
            for way in order:
                # Processor time of all threads, which does not include other work of the machine.
                began = time.process_time()
                model.fit(data, callbacks=[hooks[way]], steps_per_epoch=BATCHES, verbose=0)
                times[way].append((time.process_time() - began) / BATCHES)
        for hook in hooks.values():
            hook.close()
    tell(times)


def tell(times: dict[str, list[float]]) -> None:
    """Print the additional seconds per step of each way, compared with a hook outside a job."""
    medians = {way: statistics.median(values) for way, values in times.items()}
    sys.stdout.write(
        json.dumps({way: each - medians["outside"] for way, each in medians.items() if way != "outside"}) + "\n"
    )


def run_pytorch() -> None:
    """Measure alternating steps of a small model, in which the share of the hooks is largest."""
    import torch
    from torch import nn

    from smdebug.pytorch import Hook
    from smdebug.tracing import step_tracer

    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        ways: dict[str, Any] = {}
        hooks = []
        for name in ("outside", "off", "on"):
            configure(folder, name)
            hook = Hook(out_dir=str(Path(folder, name)), include_collections=[], save_config=None)
            model = nn.Linear(8, 8)
            hook.register_module(model)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            inputs = torch.randn(4, 8)

            def step(model: nn.Module = model, optimizer: Any = optimizer, inputs: torch.Tensor = inputs) -> None:
                optimizer.zero_grad()
                model(inputs).sum().backward()
                optimizer.step()

            ways[name] = step
            hooks.append(hook)
        assert hooks[0].tracer is None
        assert isinstance(hooks[2].tracer, step_tracer.StepTracer)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(STEPS):
            for name, step in ways.items():
                began = time.perf_counter()
                step()
                times[name].append(time.perf_counter() - began)
        assert hooks[2].tracer.config is not None
        for hook in hooks:
            hook.close()
    # The callbacks of the tracing hook are also called for the optimizers of the other ways, so that the result is
    # higher than the cost in a single training.
    tell(times)


if __name__ == "__main__":
    run_keras() if sys.argv[1] == "keras" else run_pytorch()
