"""Tracing of a TensorFlow training: steps, passes, tf.data waits, profiler."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.tensorflow.steps.operator_trace import write_operator_trace
from smdebug.tracing.step_tracer import StepTracer


class StepWatch:
    """The `smdebug.tracing.step_tracer.Watch` for TensorFlow.

    Attributes:
        splits: whether steps of Keras' loops run in a function that traces the waiting for data and the passes.
    """

    name = "tensorflow"
    is_profiled_at_exit = True

    def __init__(self) -> None:
        """Initialize without a tracer."""
        self.tracer: StepTracer | None = None
        self.splits = False
        self._profile: Path | None = None
        self._profile_began = 0.0

    def name_step(self, mode: ModeKeys, mode_step: int, number: int) -> tuple[str, int]:  # noqa: ARG002 - of `Watch`
        """Return the mode and the step in it, by which upstream counts in TensorFlow."""
        return mode.name.lower(), mode_step

    def start(self) -> None:
        """Do nothing: each step is traced by a call of `time_call`."""

    def stop(self) -> None:
        """Do nothing, like `start`."""

    def start_loading(self) -> None:
        """Start to trace the waiting for data and the passes of each step."""
        self.splits = True

    def stop_loading(self) -> None:
        """Stop tracing the waiting for data and the passes."""
        self.splits = False

    # A step of Keras' loops.

    def time_call(self, model: Any, attribute: str, split: Callable[[Any], Callable[[Any], Any]]) -> None:
        """Make the next call of Keras' step function report its end to the tracer.

        Args:
            model: model that Keras runs.
            attribute: attribute of the model that holds the step function.
            split: returns, for Keras' own function, a function that traces the waiting for data and the passes.
        """
        found = getattr(model, attribute)
        inner = split(found) if self.splits and not hasattr(found, "smdebug_original") else found
        tracer = self.tracer

        def run_timed(data: Any) -> Any:
            # This bypasses Keras' `__setattr__`, which examines each value for objects to track.
            vars(model)[attribute] = found
            try:
                return inner(data)
            finally:
                if tracer is not None:
                    tracer.end_call()

        run_timed.smdebug_original = getattr(found, "smdebug_original", found)  # type: ignore[attr-defined]
        vars(model)[attribute] = run_timed

    def fetch(self, iterator: Iterator[Any]) -> Any:
        """Return the next batch, and record the waiting time if it is traced.

        Raises:
            StopIteration: there is no batch left.
        """
        if not self.splits:
            return next(iterator)
        began = time.time()
        batch = next(iterator)
        if self.tracer is not None and self.tracer.wants_loading("dataset::GetNext"):
            self.tracer.record("DataIterator", "dataset::GetNext", began, time.time() - began, {})
        return batch

    def show_passes(self, name: str, began: float, marks: dict[str, Any]) -> None:
        """Record the forward and backward pass of a step.

        Args:
            name: name of the model.
            began: start of the step, in seconds since the epoch.
            marks: end of the passes `forward` and `backward`, in seconds since the epoch.
        """
        if self.tracer is None or not marks:
            return
        forward, backward = float(marks["forward"]), float(marks["backward"])
        self.tracer.record_pass("Forward", name, began, forward)
        self.tracer.record_pass("Backward(post-forward)", name, forward, max(backward, forward))

    # TensorFlow's own profiler.

    def start_detailed(self, step: int) -> None:  # noqa: ARG002 - of `Watch`
        """Start TensorFlow's profiler, unless it is already running."""
        folder = Path(tempfile.mkdtemp(prefix="smdebug-profile-"))
        try:
            tf.profiler.experimental.start(str(folder))
        except tf.errors.OpError as error:
            # The callback of TensorBoard or the script has started the profiler.
            shutil.rmtree(folder, ignore_errors=True)
            get_logger().warning("TensorFlow's profiler runs already, and is left to who runs it: %s", error.message)
            return
        self._profile, self._profile_began = folder, time.time()

    def stop_detailed(self, step: int) -> None:
        """Stop TensorFlow's profiler, if `start_detailed` has started it, and write its trace."""
        folder, self._profile = self._profile, None
        if folder is None:
            return
        try:
            tf.profiler.experimental.stop()
            if self.tracer is not None and self.tracer.config is not None:
                hour = time.strftime("%Y%m%d%H", time.gmtime(self._profile_began))
                place = (
                    self.tracer.config.folder / "framework" / self.name / "detailed_profiling" / hour / f"{step:09d}"
                )
                range_us = round(self._profile_began * 1e6), time.time_ns() // 1000
                write_operator_trace(folder, place, f"{self.tracer.node}_{range_us[0]}_{range_us[1]}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def marked_passes() -> Iterator[dict[str, Any]]:
    """Make tapes mark the end of the forward and the backward pass inside the context, and yield the times.

    It works in functions that are being traced and in functions that run.
    """
    marks: dict[str, Any] = {}
    written = tf.GradientTape.gradient

    def gradient(self: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        if "forward" not in marks:
            marks["forward"] = _mark(target)
        result = written(self, target, sources, *args, **kwargs)
        marks["backward"] = _mark(result)
        return result

    tf.GradientTape.gradient = gradient
    try:
        yield marks
    finally:
        tf.GradientTape.gradient = written


def _mark(values: Any) -> Any:
    """Return a tensor with the time at which the values have been computed."""
    known = [value for value in tf.nest.flatten(values) if isinstance(value, (tf.Tensor, tf.IndexedSlices))]
    with tf.control_dependencies(known):
        return tf.timestamp()
