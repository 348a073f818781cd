"""Base of the profiler rules: parameters, time windows and findings."""

import json
import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from smdebug.profiler.system_samples import GPU, Kind, Sample
from smdebug.profiler.trace_events import TraceEvent
from smdebug.rules.parameters import Parameter, convert_parameters, integer
from smdebug.rules.profiling.charts import draw_boxes
from smdebug.rules.profiling.job_record import JobRecord
from smdebug.rules.wording import count_noun

SCAN = integer("scan_interval_us", 60_000_000, minimum=1)
PATIENCE = integer("patience", 1000, minimum=1)
# A share or a distribution of fewer samples says little: a training saves or evaluates for as long.
FEWEST_SAMPLES = 20
# The folder of the rules' JSON, as AWS names it.
REPORTS = "profiler-reports"
# The maximum number of findings kept of a rule that keeps firing.
_MOST_FINDINGS = 100


def describe_lack(counts: Mapping[str, int], needed: int, noun: str, remedy: str) -> str:
    """Return why nothing was judged where no process has as many events as it takes; empty where one has.

    >>> describe_lack({"0-algo-1": 4}, 10, "step", "Train for longer")
    'Nothing was judged: it takes 10 steps of a process, and there were 4. Train for longer.'
    """
    most = max(counts.values(), default=0)
    if not 0 < most < needed:
        return ""
    were = "was" if most == 1 else "were"
    return f"Nothing was judged: it takes {count_noun(needed, noun)} of a process, and there {were} {most}. {remedy}."


@dataclass(frozen=True)
class ProfilerFinding:
    """The reason why a rule fired.

    Attributes:
        node: name of the node.
        time: end of the judged interval, in seconds since the epoch.
        value: the measured value, in the unit of the threshold.
        threshold: the value that it is compared with.
        text: one sentence that says what `value` is and how it compares with the threshold.
    """

    node: str
    time: float
    value: float
    threshold: float
    text: str


@dataclass(frozen=True)
class ProfiledJob:
    """The job that a report is about.

    Attributes:
        name: name of the training job.
        profile_path: its `profiler-output`, as a folder or `s3://bucket/prefix`.
        ended: whether the profile is complete.
        damaged: number of lines that could not be read.
    """

    name: str
    profile_path: str
    ended: bool = False
    damaged: int = 0


class ProfilerRule:
    """A rule that judges a job's profile.

    It judges each node at the end of every `scan_interval_us` of the node's time, and at the job's end. Each time it
    finds something counts as one firing.

    Args:
        given: its parameters as text or as converted values.

    Raises:
        SMDebugValueError: the rule does not have a parameter, or cannot use its value.

    Attributes:
        parameters: the parameters that the rule has, in addition to scan_interval_us.
        inspects: what the rule inspects, in words, for the message when the profile has none of it.
        concludes_at_end: whether its evaluation goes on to the job's end. That of any other rule ends when it fires.
        heading: what its section of the report is about, in a few words.
        advice: what to do about a finding.
        values: the parameters' values by name.
        triggered: number of times that the rule fired.
        violations: number of findings.
        findings: the first findings.
        data_points: number of samples or events inspected.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    inspects: ClassVar[str] = "system metrics"
    concludes_at_end: ClassVar[bool] = False
    heading: ClassVar[str] = "findings"
    advice: tuple[str, ...] = ()

    def __init__(self, **given: Any) -> None:
        self.values = convert_parameters(self.name, (*self.parameters, SCAN), given)
        self.triggered = 0
        self.violations = 0
        self.findings: list[ProfilerFinding] = []
        self.data_points = 0
        self._scan_begins: dict[str, float] = {}
        # Nodes with data that has not been judged yet, with the time of their last data.
        self._unjudged: dict[str, float] = {}
        self._prepare()

    @property
    def name(self) -> str:
        """The rule's name."""
        return type(self).__name__

    @property
    def needs_gpu(self) -> bool:
        """Whether the rule cannot fire without system metrics of a GPU."""
        return False

    def _prepare(self) -> None:
        """Set up the rule's state; does nothing by default."""

    def draw_charts(self, record: JobRecord) -> str:  # noqa: ARG002 -- for those that draw
        """Return the charts of its section of the report, as HTML; none by default."""
        return ""

    def add_sample(self, sample: Sample) -> None:
        """Add a sample; the samples of a node have to come in order."""

    def add_event(self, event: TraceEvent) -> None:
        """Add a trace event."""

    def judge(self, node: str, time: float) -> Iterator[ProfilerFinding]:  # noqa: ARG002 -- for those that fire
        """Yield the findings about a node up to a time; none by default."""
        yield from ()

    def finish(self) -> None:
        """Judge the data added since the last interval ended; called after all data was added."""
        for node, time in list(self._unjudged.items()):
            self._end_scan(node, time)

    def remark(self) -> str:
        """Return a note to add to a verdict that found no issue; empty by default."""
        return ""

    def describe_details(self) -> dict[str, Any]:
        """Return further data about the rule for a report."""
        return {"Findings": [asdict(finding) for finding in self.findings]}

    def render_files(self, job: ProfiledJob) -> dict[str, str]:  # noqa: ARG002 -- for a report of the whole job
        """Return the rule's current output by path below `profiler-output`: its JSON, with AWS's members."""
        content = {
            "RuleTriggered": self.triggered,
            "Violations": self.violations,
            "Details": self.describe_details(),
            "Datapoints": self.data_points,
            "RuleParameters": ", ".join(f"{name}:{value}" for name, value in self.values.items()),
        }
        return {f"{REPORTS}/{self.name}.json": json.dumps(content) + "\n"}

    def find(self, node: str, time: float, value: float, threshold: float, text: str) -> ProfilerFinding:
        """Return a finding whose text begins with the node."""
        return ProfilerFinding(node, time, value, threshold, f"{node}: {text}")

    def pass_time(self, node: str, time: float) -> None:
        """Judge a node if its current interval has ended; call this before adding later data."""
        begin = self._scan_begins.setdefault(node, time)
        passed = (time - begin) * 1e6 / self.values[SCAN.name]
        # Whole intervals also pass where the clock is set back by more than one.
        if abs(passed) >= 1:
            self._end_scan(node, self._unjudged.get(node, begin))
            self._scan_begins[node] = begin + math.floor(passed) * self.values[SCAN.name] / 1e6
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
    """A rule that inspects the samples of each node.

    Attributes:
        kinds: the measurements that a sample needs to be inspected; `patience` counts such samples.
        fewest: minimum number of samples of a node, after the patience, for one judgement.
        windows: the same as a multiple of the parameter `window`; 0: the rule has no such parameter.
    """

    kinds: ClassVar[tuple[Kind, ...]] = ()
    fewest: ClassVar[int] = 1
    windows: ClassVar[int] = 0

    def __init__(self, **given: Any) -> None:
        self._had_gpu = False
        self._points: dict[str, int] = defaultdict(int)
        super().__init__(**given)

    def add_sample(self, sample: Sample) -> None:
        self._had_gpu = self._had_gpu or bool(sample.get(GPU))
        if not all(map(sample.get, self.kinds)):
            return
        self.pass_time(sample.node, sample.time)
        self._points[sample.node] += 1
        if self._points[sample.node] > self.values.get(PATIENCE.name, 0):
            self.observe(sample)

    def draw_charts(self, record: JobRecord) -> str:
        return draw_boxes(record, *self.kinds)

    def observe(self, sample: Sample) -> None:
        """Inspect a sample, after the first `patience` samples of its node."""
        raise NotImplementedError

    @property
    def needs_gpu(self) -> bool:
        return any(kind[0] == GPU[0] for kind in self.kinds)

    @property
    def needed_points(self) -> int:
        """Minimum number of samples of a node for one judgement."""
        judged = self.windows * self.values["window"] if self.windows else self.fewest
        return int(self.values.get(PATIENCE.name, 0) + judged)

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
    """A rule that inspects the last `window` samples of a node, after its patience."""

    windows = 1

    def _prepare(self) -> None:
        self._window: dict[tuple[str, str, Kind], deque[float]] = defaultdict(
            lambda: deque(maxlen=self.values["window"])
        )

    def observe(self, sample: Sample) -> None:
        for kind in self.kinds:
            for device, value in sample.get(kind).items():
                self._window[sample.node, device, kind].append(value)

    def list_full(self, node: str, kind: Kind) -> Mapping[str, list[float]]:
        """Return the full windows of a node's devices, by device name."""
        return {
            device: list(kept)
            for (where, device, what), kept in self._window.items()
            if (where, what) == (node, kind) and len(kept) == self.values["window"]
        }
