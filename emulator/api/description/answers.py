"""Types of the JSON answers of the emulator's own API.

The OpenAPI document and the console's TypeScript types are generated from them.
"""

from typing import Any, NotRequired, TypedDict

Number = float | str
"""A number. JSON lacks NaN, Infinity and -Infinity: they are strings of these names."""


class RuleSummary(TypedDict):
    name: str
    status: str


class Warning(TypedDict):  # noqa: A001 -- the name of the schema
    code: str
    text: str
    remedy: str
    brief: str


class AnyJob(TypedDict):
    name: str
    region: str
    status: str
    creationMs: int
    endMs: int | None
    failureReason: str | None


class JobFacts(AnyJob):
    secondaryStatus: str
    savesTensors: bool
    warnings: list[Warning]


class JobSummary(JobFacts):
    rules: list[RuleSummary]
    description: NotRequired[dict[str, Any]]


class JobList(TypedDict):
    jobs: list[JobSummary]
    total: int
    regions: list[str]
    account: str


class ExecutionReference(TypedDict):
    region: str
    name: str
    pipeline: str


class Quantity(TypedDict):
    Quantity: str
    Threshold: Number | None
    FiresWhen: str
    Steps: list[int]
    Values: list[Number]
    Tensors: NotRequired[list[str]]
    Workers: NotRequired[list[str | None]]
    Modes: NotRequired[list[str | None]]


class RuleFinding(TypedDict):
    Step: NotRequired[int]
    Value: NotRequired[Number]


class Report(TypedDict):
    Finding: RuleFinding | None
    RuleParameters: dict[str, Any]
    StepsEvaluated: dict[str, int | None]
    Series: list[Quantity]
    RuleEvaluationStatus: str


class Rule(RuleSummary):
    details: str | None
    processingJob: str
    parameters: dict[str, str]
    outputUri: str
    report: Report | None
    startMs: int | None
    endMs: int | None


class Delivery(TypedDict):
    event_id: str
    account: str
    rule_arn: str
    target_id: str
    target_arn: str
    succeeded: bool
    answer: str
    request_id: str
    function: str
    timeMs: int


class SentEvent(TypedDict):
    sequence: int
    timeMs: int
    service: str
    region: str
    content: dict[str, Any]
    deliveries: list[Delivery]


class EventList(TypedDict):
    events: list[SentEvent]


class Transition(TypedDict):
    status: str
    startMs: int
    endMs: int | None
    message: str


class SpentSeconds(TypedDict):
    phase: str
    seconds: float


class Job(JobFacts):
    rules: list[Rule]
    spent: list[SpentSeconds]
    account: str
    request: dict[str, Any]
    description: dict[str, Any]
    transitions: list[Transition]
    events: list[SentEvent]
    links: dict[str, str]
    hosts: list[str]
    tags: dict[str, str]
    tuningJob: str | None
    execution: ExecutionReference | None


class LogLine(TypedDict):
    number: int
    timeMs: int
    message: str


class LogStream(TypedDict):
    stream: str
    host: str
    total: int
    lines: list[LogLine]


class Logs(TypedDict):
    streams: list[LogStream]


class Metric(TypedDict):
    name: str
    host: str
    unit: str
    timesMs: list[int]
    values: list[float]


class Metrics(TypedDict):
    series: list[Metric]


class JobTags(TypedDict):
    tags: dict[str, str]


class TensorBoardAddress(TypedDict):
    url: str


class Steps(TypedDict):
    count: int
    first: int | None
    last: int | None


class Tensor(TypedDict):
    name: str
    saved: list[str]


class Collection(TypedDict):
    name: str
    tensors: list[str]
    configuration: dict[str, Any]


class Run(TypedDict):
    steps: Steps
    modes: list[str]
    workers: list[str]
    ended: bool
    tensors: list[Tensor]
    collections: list[Collection]
    damaged: list[str]
    complete: bool


class NotFinite(TypedDict):
    count: int
    first: list[tuple[int, str]]


class Line(TypedDict):
    tensor: str
    mode: str
    worker: str
    known: int
    read: int
    unread: int
    steps: list[int]
    min: list[float | None]
    max: list[float | None]
    mean: list[float | None]
    notFinite: NotFinite
    timesMs: NotRequired[list[int | None]]


class Series(TypedDict):
    series: list[Line]
    lastStep: int
    ended: bool


class ValueCounts(TypedDict):
    size: int
    zero: int
    notFinite: int


class Histogram(TypedDict):
    tensor: str
    scale: str
    edges: list[float]
    steps: list[int]
    modes: list[str]
    shares: list[list[float]]
    counts: list[ValueCounts]


class HeatMap(TypedDict):
    tensors: list[str]
    known: int
    steps: list[int]
    modes: list[str]
    values: list[list[Number | None]]


class Values(TypedDict):
    tensor: str
    step: int
    workers: list[str]
    reductions: dict[str, Number]
    shape: NotRequired[list[int]]
    dtype: NotRequired[str]
    plane: NotRequired[list[list[Number | bool]]]
    index: NotRequired[list[int]]
    texts: NotRequired[list[str]]
    tooLarge: NotRequired[str]
    bytes: NotRequired[int]
    min: NotRequired[float | None]
    max: NotRequired[float | None]
    mean: NotRequired[float | None]
    std: NotRequired[float | None]
    notFinite: NotRequired[int]


class Confusion(TypedDict):
    counts: list[list[int]]
    step: int


class Retry(TypedDict):
    name: str
    status: str
    details: str
    parameters: dict[str, str]
    report: Report | None
    plot: str | None


class BucketList(TypedDict):
    buckets: list[str]


class StoredObject(TypedDict):
    key: str
    size: int
    modifiedMs: int


class Level(TypedDict):
    bucket: str
    prefix: str
    folders: list[str]
    objects: list[StoredObject]
    after: str


class Member(TypedDict):
    name: str
    size: int
    isFile: bool


class Archive(TypedDict):
    members: list[Member]
    complete: bool


class Node(TypedDict):
    name: str
    address: str
    state: str
    cpus: int
    memoryBytes: int
    containers: list[str]


class WaitingContainer(TypedDict):
    container: str
    why: str


class Swarm(TypedDict):
    nodes: list[Node]
    waiting: list[WaitingContainer]
    error: NotRequired[str]


class Health(TypedDict):
    status: str
    version: str
    pid: int
    endpoint: str
    advertised: str | None
    region: str
    account: str
    stateDir: str
    lastImport: str | None
    copy: NotRequired[str]
    runtime: NotRequired[str]
    runtimeReason: NotRequired[str]
    jobRegions: NotRequired[list[str]]
    runningTrainingJobs: NotRequired[int]
    runningRuleEvaluations: NotRequired[int]
    undeliveredEvents: NotRequired[int]
    swarm: NotRequired[Swarm]
