"""System metric events of the analysis API."""

from dataclasses import dataclass

from smdebug.unsupported import make_unsupported


@dataclass(frozen=True)
class ProfilerSystemEvent:
    """One measurement of a node.

    Attributes:
        type: cpu, gpu, memory, i/o or network.
        name: such as cpu0; None if there is none.
        dimension: the measured quantity.
        value: in the unit of the dimension.
        node_id: such as algo-1.
        timestamp: in seconds since the epoch.
    """

    type: str
    name: str | None
    dimension: str
    value: float
    node_id: str
    timestamp: float


_REASON = "read a job's system metrics with LocalSystemMetricsReader or S3SystemMetricsReader."

ProfilerSystemEvents = make_unsupported("ProfilerSystemEvents", _REASON)
SystemProfilerEventParser = make_unsupported("SystemProfilerEventParser", _REASON)
