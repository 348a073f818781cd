"""What tracing costs a training step: nothing configured, steps and passes traced, in turn with the bare step.

As a script it measures in one process and prints one JSON line.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP_SECONDS = 0.005
STEPS = 1_500


def measure() -> Iterator[str]:
    """Compare what the hook's own calls take of a step of 5 ms, off and on."""
    command = [sys.executable, str(Path(__file__)), "--run"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    yield f"off, in a job that may be profiled: {1e6 * found['off']:.1f} µs more a step than outside of a job"
    yield f"on: {1e6 * found['on']:.1f} µs more a step, {found['on'] / STEP_SECONDS:.2%} of 5 ms (at most 2%)"


def run() -> None:
    """Time steps of a small model, in which the hooks' share is largest; the median of rounds in turn."""
    import torch
    from torch import nn

    from smdebug.pytorch import Hook
    from smdebug.tracing import step_tracer

    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        config = Path(folder, "profilerconfig.json")
        ways: dict[str, Any] = {}
        hooks = []
        for name in ("outside", "off", "on"):
            os.environ.pop("SMPROFILER_CONFIG_PATH", None)
            if name != "outside":
                os.environ["SMPROFILER_CONFIG_PATH"] = str(config if name == "on" else Path(folder, "not-there"))
            config.write_text(json.dumps({"ProfilingParameters": {"LocalPath": folder, "FileOpenFailThreshold": "50"}}))
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
    medians = {name: statistics.median(values) for name, values in times.items()}
    # The callbacks of the one that is on hear of the others' optimizers, too: more than one training would pay.
    sys.stdout.write(json.dumps({name: medians[name] - medians["outside"] for name in ("off", "on")}) + "\n")


if __name__ == "__main__":
    run()
