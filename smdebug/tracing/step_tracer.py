"""StepTracer: trace events of each step of a profiled job."""

import json
import os
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from smdebug.barrier import LossReport, guarded
from smdebug.environment import DEFAULT_SAGEMAKER_PROFILER_CONFIG_FILE, PROFILER_CONFIG_PATH_ENV_STR
from smdebug.mode_keys import ModeKeys
from smdebug.tracing.configuration import TracingConfig, find_config_path, read_config
from smdebug.tracing.outer_profile import profile_until_exit, take_outer_profile
from smdebug.tracing.python_profiles import PythonProfiles, build_profiles
from smdebug.tracing.timeline import Timeline

# Time between two checks for a changed configuration.
_POLL_SECONDS = 0.5


class Watch(Protocol):
    """The part of tracing that depends on the framework: callbacks that are registered only while something is traced.

    Attributes:
        name: name of the framework in AWS's folders.
        is_profiled_at_exit: whether the end of a process is profiled as after a close, if nobody has closed the hook.
    """

    name: str
    is_profiled_at_exit: bool

    def name_step(self, mode: ModeKeys, mode_step: int, number: int) -> tuple[str, int]:
        """Return the mode and the number by which ranges and Python profiles know a step."""

    def start(self) -> None:
        """Start watching forward and backward passes."""

    def stop(self) -> None:
        """Stop watching forward and backward passes."""

    def start_loading(self) -> None:
        """Start watching data loading."""

    def stop_loading(self) -> None:
        """Stop watching data loading, and record what was measured."""

    def start_detailed(self, step: int) -> None:
        """Start the framework's own profiler at a step."""

    def stop_detailed(self, step: int) -> None:
        """Stop the framework's own profiler, and record what it measured since a step."""


@dataclass
class _Step:
    """The step in progress; times in seconds since the epoch."""

    mode: ModeKeys
    mode_step: int
    point: tuple[str, int]
    began: float
    forward_ended: float | None = None
    ended: float | None = None
    lasts_to_next: bool = False
    compiles: bool = False


class StepTracer:
    """Writes the trace events and profiles of one process. Nothing is timed while nothing is traced.

    Attributes:
        config: the settings of tracing; None if nothing is traced.
        node: name of this process in file names, while something is traced.
    """

    def __init__(self, watch: Watch, get_rank: Callable[[], int | None]) -> None:
        """Set the framework's part, and the function that returns this process's rank in distributed training."""
        self.config: TracingConfig | None = None
        self.node = ""
        self._watch = watch
        self._get_rank = get_rank
        self._path = find_config_path()
        self._state: tuple[int, int, int] | None = None
        self._look_at = 0.0
        self._pid = os.getpid()
        self._losses = LossReport()
        self._timeline: Timeline | None = None
        self._python: PythonProfiles | None = None
        self._is_loading_watched = False
        self._detailed_since: int | None = None
        self._step: _Step | None = None
        # The number of the current or last step in its mode.
        self._mode_step = "0"

    @guarded("what is traced of a step")
    def begin_step(self, mode: ModeKeys, mode_step: int, number: int, *, lasts_to_next: bool = False) -> None:
        """Record that a step begins, which ends the previous one; `lasts_to_next`: no other call ends this step."""
        point = self._watch.name_step(mode, mode_step, number)
        if time.monotonic() >= self._look_at:
            self._look(point)
        config = self.config
        if config is None:
            return
        if os.getpid() != self._pid:
            self._leave_to_parent()
            return
        now = time.time()
        if self._step is not None and self._step.lasts_to_next:
            self._step.ended = now
        self._end_step()
        self._step = _Step(mode, mode_step, point, now, lasts_to_next=lasts_to_next)
        self._mode_step = str(mode_step)
        if self._python is not None:
            self._python.end(*point, "stepstart")
        self._follow_ranges(config, point[1], now)
        self._step.began = time.time()
        self._begin_profile(point, "stepstart")

    @guarded("what is traced of a forward pass")
    def end_forward(self, name: str) -> None:
        """Record that the model's forward pass has ended."""
        step = self._step
        if step is None or step.forward_ended is not None:
            return
        step.forward_ended = step.ended = time.time()
        self.record_pass("Forward", name, step.began, step.forward_ended)
        self._split_profile(step, "forwardpassend")

    @guarded("what is traced of a backward pass")
    def end_backward(self, name: str) -> None:
        """Record that gradients are about to be used; with several optimizers, the first call counts."""
        step = self._step
        if step is not None and step.forward_ended is not None and step.ended == step.forward_ended:
            step.ended = time.time()
            self.record_pass("Backward(post-forward)", name, step.forward_ended, step.ended)

    def note_compilation(self) -> None:
        """Record that the current step compiles a function of the hook, for which it takes longer than others."""
        if self._step is not None:
            self._step.compiles = True

    def end_update(self) -> None:
        """Record that an optimizer has used the gradients."""
        if self._step is not None:
            self._step.ended = time.time()

    @guarded("what is traced of a step")
    def end_call(self) -> None:
        """Record that the one call that makes up a whole step has ended."""
        if self._step is not None:
            self._step.ended = time.time()
            self._split_profile(self._step, "stepend")

    @guarded("what is traced of a loop")
    def end_loop(self, mode: ModeKeys, mode_step: int, number: int) -> None:
        """Record that a loop over steps has ended, whose last step this is: a Python profile ends with it."""
        if self._python is not None:
            point = self._watch.name_step(mode, mode_step, number)
            self._python.end(*point, "stepend")
            self._begin_profile(point, "stepend")

    def record_pass(self, phase: str, name: str, start: float, end: float) -> None:
        """Record a pass of the current step; times in seconds since the epoch."""
        if self._step is not None:
            args = {"step_num": str(self._step.mode_step), "pid": self._pid}
            self.record(phase, name, start, end - start, args)

    def record(
        self, phase: str, name: str, start: float, duration: float, args: dict[str, Any], kind: str = "X"
    ) -> None:
        """Record any event, while something is traced; times in seconds.

        Without a step_num it gets that of the current step: upstream's analysis ends with an error at an event that
        has none and lies between two steps.
        """
        if self._timeline is not None:
            self._timeline.record(phase, name, start, duration, {"step_num": self._mode_step, **args}, kind)

    def wants_loading(self, metric: str) -> bool:
        """Whether a data loading metric is traced at the current step."""
        return self._is_loading_watched and self.config is not None and self.config.wants_metric(metric)

    @guarded("the end of what is traced")
    def close(self, *, at_exit: bool = False) -> None:
        """Write the remaining data; nothing is traced after that but Python, until the process exits.

        Args:
            at_exit: whether the process exits.
        """
        config, python = self.config, self._python
        if config is not None and os.getpid() == self._pid:
            self._stop(("posthookclose", "*"), "end")
            if python is not None and not at_exit:
                profile_until_exit(config, python)
            elif python is not None and self._watch.is_profiled_at_exit:
                python.begin("prestepzero", "*", "end")
                python.end("posthookclose", "*", "end")
        self._look_at = float("inf")

    def report_loss(self, lost: str, error: Exception) -> None:
        """Log once what was lost; nothing is traced until the configuration changes."""
        self._losses.say(lost, error)
        was_traced, self.config = self.config is not None, None
        self._step = self._python = None
        timeline, self._timeline = self._timeline, None
        if os.getpid() != self._pid:
            return
        if was_traced:
            with suppress(Exception):  # one loss is reported, and the rest is stopped nevertheless
                self._stop_watching()
        if timeline is not None:
            timeline.close()

    def _look(self, point: tuple[str, int]) -> None:
        """Check whether the configuration has changed, and apply it."""
        self._look_at = time.monotonic() + _POLL_SECONDS
        try:
            found = self._path.stat()
            state = (found.st_ino, found.st_size, found.st_mtime_ns)
        except OSError:
            state = None
        if state == self._state:
            return
        self._state = state
        config = read_config(self._path, point[1]) if state is not None else None
        if self.config is not None:
            self._stop(point, "stepstart")
        if config is not None:
            self._start(config)

    def _start(self, config: TracingConfig) -> None:
        node = self.node = self._build_node()
        self._timeline = Timeline(
            config.folder,
            node,
            max_bytes=config.max_file_bytes,
            max_seconds=config.max_file_seconds,
            max_failures=config.max_failures,
        )
        self._pid = os.getpid()
        self.config = config
        self._python = take_outer_profile(config)
        if self._python is None and config.python is not None:
            try:
                self._python = build_profiles(config)
            except ImportError as error:
                self._losses.say("profiles of Python: install pyinstrument, or name cprofile", error)
        if self._python is not None:
            self._python.place(config.folder, self._watch.name, node)
        self._watch.start()

    def _stop(self, point: tuple[str, object], phase: str) -> None:
        """Stop tracing at a point, by which the Python profile in progress is named."""
        self._end_step()
        if self._python is not None:
            self._python.end(*point, phase)
            self._python = None
        self._stop_watching()
        self.config = None
        if self._timeline is not None:
            self._timeline.close()
            self._timeline = None

    def _stop_watching(self) -> None:
        """Stop all that watches the framework, also if a part of it fails."""
        with ExitStack() as stopping:
            stopping.callback(self._watch.stop)
            if self._detailed_since is not None:
                stopping.callback(self._watch.stop_detailed, self._detailed_since)
            if self._is_loading_watched:
                stopping.callback(self._watch.stop_loading)
            self._detailed_since, self._is_loading_watched = None, False

    def _follow_ranges(self, config: TracingConfig, number: int, now: float) -> None:
        """Start and stop the kinds of tracing that are limited to some steps."""
        loading = config.data_loading is not None and config.data_loading.holds(number, now)
        if loading != self._is_loading_watched:
            self._is_loading_watched = loading
            if loading:
                self._watch.start_loading()
            else:
                self._watch.stop_loading()
        detailed = config.detailed is not None and config.detailed.holds(number, now)
        if self._detailed_since is not None and not detailed:
            self._watch.stop_detailed(self._detailed_since)
            self._detailed_since = None
        elif self._detailed_since is None and detailed:
            self._detailed_since = number
            self._watch.start_detailed(number)

    def _split_profile(self, step: _Step, phase: str) -> None:
        """End the Python profile at a point within a step, and start the next one."""
        if self._python is not None and self._python.is_profiling:
            self._python.end(*step.point, phase)
            self._python.begin(*step.point, phase)

    def _begin_profile(self, point: tuple[str, int], phase: str) -> None:
        """Start a Python profile at a point, if one is wanted there."""
        range_ = self.config.python if self.config is not None else None
        if self._python is not None and range_ is not None and range_.holds(point[1], time.time()):
            self._python.begin(*point, phase)

    def _end_step(self) -> None:
        step, self._step = self._step, None
        if step is not None and step.ended is not None:
            phase = f"Step:ModeKeys.{step.mode.name}"
            args: dict[str, Any] = {"step_num": str(step.mode_step), "pid": self._pid}
            if step.compiles:
                args["compiles"] = True
            self.record(phase, phase, step.began, step.ended - step.began, args)

    def _build_node(self) -> str:
        rank = self._get_rank()
        try:
            host = json.loads(self._path.with_name("resourceconfig.json").read_text(encoding="utf-8"))["current_host"]
        except (OSError, ValueError, KeyError, TypeError):
            host = socket.gethostname()
        return f"{os.getpid() if rank is None else rank}-{host}".replace("_", "-")

    def _leave_to_parent(self) -> None:
        """Trace nothing in a newly forked child: its files belong to the parent, which continues to write them."""
        self._timeline = self._python = self._step = self.config = None
        self._look_at = float("inf")


def may_be_traced() -> bool:
    """Whether this process belongs to a job that may be profiled, now or after an update."""
    return PROFILER_CONFIG_PATH_ENV_STR in os.environ or Path(DEFAULT_SAGEMAKER_PROFILER_CONFIG_FILE).exists()
