"""Training script of the console's completed job.

It trains a layer on the digits by numpy, which a process imports in a tenth of a second, and PyTorch in ten. Its hook
saves and traces as a framework's does.
"""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from smdebug.capture.hook import BaseHook
from smdebug.mode_keys import ModeKeys
from smdebug.tracing.step_tracer import StepTracer
from smdebug.writing.run_writer import Worker

STEPS = 300
# So few that numpy needs no threads, which would wait for each other on a busy machine.
BATCH = 64

say = partial(print, flush=True)


class Watch:
    """What nothing has to be registered for: the loop below says when a pass ends."""

    name = "numpy"
    is_profiled_at_exit = False

    def name_step(self, mode: ModeKeys, mode_step: int, number: int) -> tuple[str, int]:
        return mode.name.lower(), number

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def start_loading(self) -> None: ...
    def stop_loading(self) -> None: ...
    def start_detailed(self, step: int) -> None: ...
    def stop_detailed(self, step: int) -> None: ...


class Hook(BaseHook):
    """A hook of a training in one process."""

    def get_worker(self) -> Worker:
        return Worker.of_rank(0, 1)


def estimate(images: np.ndarray[Any, Any], weight: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The probability of each digit for each image."""
    shares = np.exp(images @ weight)
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def measure_loss(shares: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> np.float32:
    """The cross entropy."""
    return np.float32(-np.log(shares[np.arange(len(labels)), labels]).mean())


def main() -> None:
    """Train on some images, and print the accuracy on others."""
    digits = np.load(Path(os.environ["SM_CHANNEL_TRAINING"]) / "digits.npz")
    images, labels = digits["images"].reshape(-1, 64), digits["labels"]
    held_out = len(images) // 5
    batch, wanted = images[held_out : held_out + BATCH], labels[held_out : held_out + BATCH]
    weight = np.zeros((64, 10), np.float32)

    hook = Hook.create_from_json_file()
    tracer = hook.tracer = StepTracer(Watch(), lambda: None)
    hook.set_mode(ModeKeys.TRAIN)
    for step in range(STEPS):
        hook._increment_step()
        hook.trace_step()
        shares = estimate(batch, weight)
        loss = measure_loss(shares, wanted)
        tracer.end_forward("Layer")
        shares[np.arange(BATCH), wanted] -= 1
        gradient = batch.T @ shares / BATCH
        tracer.end_backward("Layer")
        hook.save_tensor("layer.weight", weight, "weights")
        hook.save_tensor("gradient/layer.weight", gradient, "gradients")
        hook.save_tensor("cross_entropy_loss", loss, "losses")
        weight = weight - np.float32(0.5) * gradient
        if step % 100 == 0:
            say(f"step={step} train_loss={loss:.4f};")
        time.sleep(0.003)  # so that its processor, memory and disk are measured

    hook.set_mode(ModeKeys.EVAL)
    hook._increment_step()
    shares = estimate(images[:held_out], weight)
    hook.save_tensor("cross_entropy_loss", measure_loss(shares, labels[:held_out]), "losses")
    hook.close()
    accuracy = (shares.argmax(axis=1) == labels[:held_out]).mean()
    say(f"test_accuracy={accuracy:.4f};")
    np.save(Path(os.environ["SM_MODEL_DIR"]) / "model.npy", weight)


if __name__ == "__main__":
    main()
