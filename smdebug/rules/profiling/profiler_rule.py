"""Base of the profiler rules: parameters, time windows and findings."""

import json
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from smdebug.profiler.system_samples import GPU, Kind, Sample
from smdebug.profiler.trace_events import TraceEvent
from smdebug.rules.parameters import Parameter, convert_parameters, integer

SCAN = integer("scan_interval_us", 60_000_000, minimum=1)
PATIENCE = integer("patience", 1000, minimum=1)
# Where the rules' JSON lies, as AWS has it.
REPORTS = "profiler-reports"
# What is kept of a rule that fires all day.
_MOST_FINDINGS = 100


@dataclass(frozen=True)
class ProfilerFinding:
    """What made a rule fire.

    Attributes:
        node: where.
        time: the end of what was judged, in seconds since the epoch.
        value: what was measured, in the unit of the threshold.
        threshold: what it was measured against.
        text: one sentence that says what `value` is and how it lies to the threshold.
    """

    node: str
    time: float
    value: float
    threshold: float
    text: str


@dataclass(frozen=True)
class ProfiledJob:
    """What a report says of the job that is judged.

    Attributes:
        name: the training job's.
        profile_path: its `profiler-output`, as a folder or `s3://bucket/prefix`.
        ended: whether no more comes.
        damaged: how many lines could not be read.
    """

    name: str
    profile_path: str
    ended: bool = False
    damaged: int = 0


class ProfilerRule:
    """A rule of the profiler.

    It judges each node at the end of every `scan_interval_us` of its time, and at the job's end; each such moment at
    which it finds something is one firing.

    Args:
        given: its parameters as text or as what the text stands for.

    Raises:
        SMDebugValueError: a parameter that the rule does not have, or a value that it cannot use.

    Attributes:
        parameters: the parameters that a rule has, beside scan_interval_us.
        inspects: what is looked at, in words, for the message when nothing of it came.
        advice: what to do about what the rule found.
        values: the parameters' values by name.
        triggered: how often it has fired.
        violations: how many things it has found.
        findings: the first of them.
        data_points: how many samples or events it looked at.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    inspects: ClassVar[str] = "system metrics"
    advice: tuple[str, ...] = ()

    def __init__(self, **given: Any) -> None:
        self.values = convert_parameters(self.name, (*self.parameters, SCAN), given)
        self.triggered = 0
        self.violations = 0
        self.findings: list[ProfilerFinding] = []
        self.data_points = 0
        self._scan_begins: dict[str, float] = {}
        # Nodes of which something has come since they were judged, with the last time of it.
        self._unjudged: dict[str, float] = {}
        self._prepare()

    @property
    def name(self) -> str:
        """The rule's name."""
        return type(self).__name__

    @property
    def needs_gpu(self) -> bool:
        """Whether it cannot fire without system metrics of a GPU."""
        return False

    def _prepare(self) -> None:
        """Set up what a rule remembers; nothing by default."""

    def add_sample(self, sample: Sample) -> None:
        """Take a sample; those of a node in their order."""

    def add_event(self, event: TraceEvent) -> None:
        """Take a trace event."""

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:  # noqa: ARG002 -- for those that fire
        """Give what is wrong with a node up to a time; nothing by default."""
        yield from ()

    def finish(self) -> None:
        """Judge what has come since the last moment, as no more does."""
        for node, time in list(self._unjudged.items()):
            self._end_scan(node, time)

    def remark(self) -> str:
        """Return what has to be said beside a verdict that found no issue; nothing by default."""
        return ""

    def describe_details(self) -> dict[str, Any]:
        """Return what a report says of the rule beside its numbers."""
        return {"Findings": [asdict(finding) for finding in self.findings]}

    def render_files(self, job: ProfiledJob) -> dict[str, str]:  # noqa: ARG002 -- for a report of the whole job
        """Return what the rule leaves, so far, by its path below `profiler-output`: its JSON, with AWS's members."""
        content = {
            "RuleTriggered": self.triggered,
            "Violations": self.violations,
            "Details": self.describe_details(),
            "Datapoints": self.data_points,
            "RuleParameters": ", ".join(f"{name}:{value}" for name, value in self.values.items()),
        }
        return {f"{REPORTS}/{self.name}.json": json.dumps(content) + "\n"}

    def find(self, node: str, time: float, value: float, threshold: float, text: str) -> ProfilerFinding:
        """Return a finding whose text begins with where it is."""
        return ProfilerFinding(node, time, value, threshold, f"{node}: {text}")

    def pass_time(self, node: str, time: float) -> None:
        """Judge a node if a piece of its time is over; to be called before something later is counted."""
        begin = self._scan_begins.setdefault(node, time)
        passed = (time - begin) * 1e6 // self.values[SCAN.name]
        if passed >= 1:
            self._end_scan(node, self._unjudged.get(node, begin))
            self._scan_begins[node] = begin + passed * self.values[SCAN.name] / 1e6
        self._unjudged[node] = time
        self.data_points += 1

    def _end_scan(self, node: str, time: float) -> None:
        if self._unjudged.pop(node, None) is None:
            return
        found = list(self.judge(node, time))
        self.triggered += bool(found)
        self.violations += len(found)
        self.findings += found[: _MOST_FINDINGS - len(self.findings)]


class SampleRule(ProfilerRule):
    """A rule that looks at the samples of each node.

    Attributes:
        kinds: what a sample has to have for the rule to look at it; `patience` counts such samples.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ()

    def __init__(self, **given: Any) -> None:
        self._had_gpu = False
        self._points: dict[str, int] = defaultdict(int)
        super().__init__(**given)

    def add_sample(self, sample: Sample) -> None:
        """See `ProfilerRule`."""
        self._had_gpu = self._had_gpu or bool(sample.get(GPU))
        if not all(map(sample.get, self.kinds)):
            return
        self.pass_time(sample.node, sample.time)
        self._points[sample.node] += 1
        if self._points[sample.node] > self.values.get(PATIENCE.name, 0):
            self.observe(sample)

    def observe(self, sample: Sample) -> None:
        """Take note of a sample after the first `patience` of its node."""
        raise NotImplementedError

    @property
    def needs_gpu(self) -> bool:
        """See `ProfilerRule`."""
        return any(kind[0] == GPU[0] for kind in self.kinds)

    @property
    def needed_points(self) -> int:
        """How many samples of a node it takes to be judged once."""
        return int(self.values.get(PATIENCE.name, 0)) + 1

    def remark(self) -> str:
        """Say why nothing could be judged."""
        if self.needs_gpu and not self._had_gpu:
            return "There was no GPU: no system metric of a GPU came, and without one this rule cannot fire."
        most = max(self._points.values(), default=0)
        if 0 < most < self.needed_points:
            return (
                f"Nothing was judged: it takes {self.needed_points} data points of a node, and there were {most}. "
                "Lower patience or window, or ProfilingIntervalInMilliseconds."
            )
        return ""


class WindowRule(SampleRule):
    """A rule that looks at the last `window` samples of a node, once there are so many after its patience."""

    def _prepare(self) -> None:
        self._window: dict[tuple[str, str, Kind], deque[float]] = {}

    @property
    def needed_points(self) -> int:
        """How many samples of a node it takes to be judged once."""
        return int(self.values[PATIENCE.name] + self.values["window"])

    def keep(self, node: str, device: str, kind: Kind, value: float) -> None:
        """Add to a device's window."""
        key = node, device, kind
        if key not in self._window:
            self._window[key] = deque(maxlen=self.values["window"])
        self._window[key].append(value)

    def list_full(self, node: str, kind: Kind) -> Mapping[str, list[float]]:
        """Return the windows of a node's devices that are full, by the devices' names."""
        return {
            device: list(kept)
            for (where, device, what), kept in self._window.items()
            if (where, what) == (node, kind) and len(kept) == self.values["window"]
        }
