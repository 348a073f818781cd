"""Bytecode of the hook in a training step, counted beside another checkout.

    BESIDE=FOLDER python -m benchmarks hook_instructions

compares this checkout with FOLDER, such as a `git worktree` of an older commit; without BESIDE it is counted alone.
Counts are the same on a busy machine, where times are not. A step's count is that of the bytecode instructions in
smdebug's files and of the functions in C that they call. What is done once an epoch or a run is not counted. Keras 2 is
counted in the environment of the image of TensorFlow 2.12.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).parents[2]
# Steps before the count begins, and steps that are counted.
FIRST, COUNTED = 5, 20
WAYS = {"idle": (10**6, 10**6), "saved": (0, 1)}
TORCH = """
import torch
import smdebug.pytorch as smd
torch.manual_seed(0)
net = torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(16, 16), torch.nn.ReLU())])
hook = smd.Hook(out, save_config=smd.SaveConfig(start_step=start, save_interval=interval), include_collections=[
    "weights", "biases", "gradients", "losses"])
hook.register_module(net)
loss = torch.nn.MSELoss()
hook.register_loss(loss)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.ones(4, 16)
for number in range(first + counted + 1):
    if number == first:
        begin()
    if number == first + counted:
        end()
    optimizer.zero_grad()
    loss(net(x), x).backward()
    optimizer.step()
"""
KERAS = """
import numpy as np, tensorflow as tf
import smdebug.tensorflow as smd
tf.keras.utils.set_random_seed(0)
net = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu") for _ in range(8)])
net.compile("sgd", "mse")
hook = smd.KerasHook(out, save_config=smd.SaveConfig(start_step=start, save_interval=interval), include_collections=[
    "weights", "biases", "gradients", "losses", "metrics"])
class Counted(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch == first - 1:
            begin()
        if batch == first + counted - 1:
            end()
x = np.ones((4, 16), "float32")
data = tf.data.Dataset.from_tensors((x, x)).repeat()
net.fit(data, steps_per_epoch=first + counted + 1, epochs=1, verbose=0, callbacks=[hook, Counted()])
"""
SCRIPTS = {"PyTorch": TORCH, "Keras": KERAS, "Keras 2": KERAS}


class Counter:
    """Counts what smdebug's files execute, from ``begin`` on."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.instructions = 0
        self.calls = 0

    def begin(self) -> None:
        sys.settrace(self._trace)
        sys.setprofile(self._profile)
        # Frames that have begun are traced by their own function.
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 -- there is no other way to a frame that has begun
        while frame is not None:
            frame.f_trace = self._trace(frame, "call", None)
            frame = frame.f_back

    def end(self) -> None:
        sys.settrace(None)
        sys.setprofile(None)

    def _trace(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(self._folder):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.instructions += event == "opcode"
        return self._trace

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        self.calls += event == "c_call" and frame.f_code.co_filename.startswith(self._folder)


def count_here(framework: str, way: str) -> dict[str, float]:
    """Return what a step executes with the smdebug that this interpreter imports."""
    import smdebug

    counter = Counter(f"{Path(smdebug.__file__).parent}/")
    start, interval = WAYS[way]
    with tempfile.TemporaryDirectory() as folder:
        names = {"out": f"{folder}/run", "start": start, "interval": interval, "first": FIRST, "counted": COUNTED}
        exec(compile(SCRIPTS[framework], framework, "exec"), {**names, "begin": counter.begin, "end": counter.end})
    return {"instructions": counter.instructions / COUNTED, "calls": counter.calls / COUNTED}


def find_interpreter(framework: str) -> str:
    """Return the interpreter of the environment that has a framework, which is built if need be."""
    if framework != "Keras 2":
        return sys.executable
    from container_runtime.images.catalogue import ImageCatalogue
    from container_runtime.process.environments import build_environment

    definition = next(found for found in ImageCatalogue() if found.name == "tensorflow-training-2.12")
    return str(build_environment(definition).python)


def count(framework: str, way: str, checkout: Path) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    environment |= {"TF_CPP_MIN_LOG_LEVEL": "3", "SMDEBUG_LOG_LEVEL": "off"}
    command = [find_interpreter(framework), __file__, "--here", framework, way]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    counted: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return counted


def measure() -> Iterator[str]:
    other = os.environ.get("BESIDE")
    for framework in SCRIPTS:
        for way in WAYS:
            now = count(framework, way, HERE)
            before = count(framework, way, Path(other)) if other else {}
            for what, number in now.items():
                change = f", {number / before[what] - 1:+.1%} beside {before[what]:,.0f}" if before.get(what) else ""
                yield f"{framework}, {way} step: {number:,.0f} {what}{change}"


if __name__ == "__main__":
    print(json.dumps(count_here(*sys.argv[2:])))
