"""Instructions of a training step with a hook, counted, beside those of another checkout.

    python -m benchmarks.hook_instructions FOLDER

compares the smdebug of this checkout with that of FOLDER, for example a `git worktree` of an older commit. Unlike
times, counts are the same on a busy machine. Each way of training runs twice, with different numbers of steps, and the
difference is divided by that of the steps: starts and ends do not count. Where the kernel counts no instructions (`perf
stat`), valgrind does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parents[1]
# Steps of the two runs of each way.
STEPS = {"idle": (200, 1200), "saved": (20, 120)}
INTERVAL = {"idle": 10**6, "saved": 1}
SCRIPTS = {
    "PyTorch": """
import sys, torch
import smdebug.pytorch as smd
torch.manual_seed(0)
torch.set_num_threads(1)
net = torch.nn.Sequential(*[layer for _ in range(8) for layer in (torch.nn.Linear(16, 16), torch.nn.ReLU())])
names = ["weights", "biases", "gradients", "losses"]
config = smd.SaveConfig(start_step={start}, save_interval={interval})
hook = smd.Hook(sys.argv[1], save_config=config, include_collections=names)
hook.register_module(net)
loss = torch.nn.MSELoss()
hook.register_loss(loss)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.ones(4, 16)
for _ in range({steps}):
    optimizer.zero_grad()
    loss(net(x), x).backward()
    optimizer.step()
""",
    "Keras": """
import sys
import numpy as np, tensorflow as tf
import smdebug.tensorflow as smd
tf.keras.utils.set_random_seed(0)
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.config.threading.set_intra_op_parallelism_threads(1)
net = tf.keras.Sequential([tf.keras.layers.Dense(16, activation="relu") for _ in range(8)])
net.compile("sgd", "mse")
config = smd.SaveConfig(start_step={start}, save_interval={interval})
hook = smd.KerasHook(sys.argv[1], save_config=config, include_collections=["weights", "biases", "losses", "metrics"])
x = np.ones((4, 16), "float32")
data = tf.data.Dataset.from_tensors((x, x)).repeat()
net.fit(data, steps_per_epoch={steps}, epochs=1, verbose=0, callbacks=[hook])
""",
}


def count(script: str, smdebug: Path) -> int:
    """Return the instructions of a script that imports the smdebug of a folder."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "script.py")
        program.write_text(script)
        command = [sys.executable, str(program), str(Path(folder, "run"))]
        environment = {
            **os.environ,
            "PYTHONPATH": str(smdebug),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "SMDEBUG_LOG_LEVEL": "off",
        }
        done = run(["perf", "stat", "-x,", "-e", "instructions:u", *command], environment)
        if found := re.search(r"^(\d+),[^,]*,instructions:u", done.stderr, re.MULTILINE):
            return int(found[1])
        counts = f"--callgrind-out-file={folder}/counts"
        done = run(["valgrind", "--tool=callgrind", counts, *command], environment)
        found = re.search(r"Collected : (\d+)", done.stderr)
        if found is None:
            sys.exit(f"Neither perf nor valgrind counts instructions here:\n{done.stderr[-2000:]}")
        return int(found[1])


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    if shutil.which(command[0]) is None:
        return subprocess.CompletedProcess(command, 127, "", f"{command[0]} is not installed")
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def count_a_step(script: str, way: str, smdebug: Path) -> float:
    few, many = STEPS[way]
    start = 10**6 if way == "idle" else 0
    counts = [count(script.format(steps=steps, start=start, interval=INTERVAL[way]), smdebug) for steps in (few, many)]
    return (counts[1] - counts[0]) / (many - few)


def main() -> None:
    (other,) = map(Path, sys.argv[1:])
    print("| framework | step | instructions before | now | change |\n|---|---|---|---|---|")
    for framework, script in SCRIPTS.items():
        for way in STEPS:
            before, now = (count_a_step(script, way, smdebug) for smdebug in (other, HERE))
            print(f"| {framework} | {way} | {before:,.0f} | {now:,.0f} | {now / before - 1:+.1%} |", flush=True)


if __name__ == "__main__":
    main()
