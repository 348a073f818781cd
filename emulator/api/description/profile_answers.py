"""JSON answers about profiles of training jobs."""

from __future__ import annotations

from typing import TypedDict


class Bands(TypedDict):
    times: list[float]
    low: list[float | None]
    mean: list[float | None]
    high: list[float | None]


class UsageLine(Bands):
    node: str
    figure: str
    unit: str


class StepDurations(Bands):
    process: str
    mode: str


class LoopTime(TypedDict):
    process: str
    seconds: float
    steps: int
    median_step: float | None
    forward: float | None
    backward: float | None
    data_loading: float | None
    other: float


class Usage(TypedDict):
    node: str
    metric: str
    unit: str
    mean: float
    p50: float
    p95: float
    max: float


class PythonProfile(TypedDict):
    framework: str
    profiler: str
    process: str
    name: str
    begin: tuple[str, str, str]
    end: tuple[str, str, str]
    begin_s: float
    end_s: float


class Phases(TypedDict):
    process: str
    columns: int
    shares: dict[str, list[float]]


class Profile(TypedDict):
    ended: bool
    damaged: int
    nodes: list[str]
    samples: int
    events: int
    span: tuple[float, float] | None
    usage: list[Usage]
    time: list[LoopTime]
    phases: list[Phases]
    lines: list[UsageLine]
    steps: list[StepDurations]
    pythonProfiles: list[PythonProfile]
    pythonProfilesKnown: int


class Call(TypedDict):
    name: str
    file: str
    line: int
    seconds: float
    own: float
    children: list[Call]


class FunctionTime(TypedDict):
    name: str
    file: str
    line: int
    own: float


class FlameGraph(TypedDict):
    profiler: str
    profiles: int
    known: int
    damaged: int
    seconds: float
    tree: Call
    functions: list[FunctionTime]
