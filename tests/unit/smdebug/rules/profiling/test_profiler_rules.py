"""Tests of each profiler rule, on a matching and a healthy series."""

import doctest
import json
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from smdebug.exceptions import SMDebugValueError
from smdebug.profiler.system_samples import CPU, GPU, GPU_MEMORY, IO_WAIT, MEMORY, NETWORK, Sample
from smdebug.profiler.trace_events import TraceEvent
from smdebug.rules.profiling.builtin import find_profiler_rule, list_profiler_rules
from smdebug.rules.profiling.evaluation import conclude, write_report
from smdebug.rules.profiling.profiler_rule import ProfiledJob, ProfilerRule

STEP = "Step:ModeKeys.TRAIN"
# A sample a second: the first hundred are left out.
PATIENCE = "100"


def build_samples(count: int, node: str = "algo-1", begin: int = 0, **figures: Any) -> list[Sample]:
    """Return a sample a second; a figure is a list of the devices', or a function of the second that gives one."""
    kinds = {"cpu": CPU, "wait": IO_WAIT, "gpu": GPU, "gpu_memory": GPU_MEMORY, "memory": MEMORY, "network": NETWORK}
    samples = []
    for second in range(begin, begin + count):
        given = {kinds[name]: value(second) if callable(value) else value for name, value in figures.items()}
        found = {kind: {f"{kind[0]}{at}": value for at, value in enumerate(values)} for kind, values in given.items()}
        samples.append(Sample(node, float(second), found))
    return samples


def build_steps(durations: Iterable[float], phase: str = STEP, begin: float = 1000.0) -> list[TraceEvent]:
    events = []
    for number, duration in enumerate(durations):
        events.append(TraceEvent("0-algo-1", phase, phase, begin, duration, {"step_num": str(number)}))
        begin += duration
    return events


def run(name: str, samples: Iterable[Sample] = (), events: Iterable[TraceEvent] = (), **given: str) -> ProfilerRule:
    rule = find_profiler_rule(name)(**given)
    for sample in samples:
        rule.add_sample(sample)
    for event in events:
        rule.add_event(event)
    rule.finish()
    return rule


def load(worker_count: int, *, of_worker: bool = False) -> list[TraceEvent]:
    if of_worker:
        return [TraceEvent("0-algo-1", "DataLoaderWorker", "w", float(at), 100.0, {}) for at in range(worker_count)]
    return [TraceEvent("0-algo-1", "DataLoaderIter", "n", 1.0, 0.1, {"num_workers": worker_count})]


def wait_for_data(wait: float, rest: float, phase: str = "DataLoaderIter") -> list[TraceEvent]:
    """1000 batches, each waited for, and a step without waiting after each."""
    begins = (at * (wait + rest) for at in range(1000))
    return [TraceEvent("0-algo-1", phase, "n", begin, wait, {}) for begin in begins]


HEALTHY = build_samples(
    400, cpu=[60.0, 80.0], wait=[1.0, 2.0], gpu=[90.0, 92.0], gpu_memory=[50.0, 51.0], memory=[30.0]
)
SICK: dict[str, tuple[list[Sample], list[TraceEvent], dict[str, str], int, str]] = {
    "CPUBottleneck": (
        build_samples(400, cpu=[95.0, 20.0], gpu=[5.0, 90.0]),
        [],
        {"patience": PATIENCE},
        6,
        "in 100 % of 20 data points, more than threshold 50 %, a GPU was below 10 % while a core was above 90 %",
    ),
    "IOBottleneck": (
        build_samples(400, wait=[0.0, 70.0], gpu=[5.0]),
        [],
        {"patience": PATIENCE},
        6,
        "a GPU was below 10 % while a core waited for I/O above 50 %",
    ),
    "LowGPUUtilization": (
        build_samples(400, gpu=[20.0, 90.0]),
        [],
        {"patience": PATIENCE, "window": "20"},
        6,
        "gpu0 is underused: its 95th percentile is 20 %, below threshold_p95 70 %",
    ),
    "BatchSize": (
        build_samples(400, cpu=[20.0], gpu=[30.0], gpu_memory=[10.0]),
        [],
        {"patience": PATIENCE, "window": "50"},
        5,
        "95th percentiles are cpu 20 % (below cpu_threshold_p95 70 %), gpu 30 %",
    ),
    "GPUMemoryIncrease": (
        build_samples(400, gpu_memory=lambda at: [20.0 if at < 250 else 60.0]),
        [],
        {"patience": PATIENCE},
        1,
        "the memory utilisation of gpu0 rose by 40 percentage points from one mean of 10 data points to the next",
    ),
    "LoadBalancing": (
        build_samples(400, gpu=[15.0, 95.0]),
        [],
        {"patience": PATIENCE},
        6,
        "the utilisation of gpu0 and gpu1 differs: their histograms are 1 apart, more than threshold 0.5",
    ),
    "AllCoresBusy": (
        build_samples(400, cpu=[99.0, 98.0]),
        [],
        {},
        6,
        "the mean of the cores was above cpu_threshold 90 %",
    ),
    "MemoryGrowth": (
        build_samples(400, memory=lambda at: [20.0 + at / 10]),
        [],
        {},
        2,
        "the memory used rose by 16 percentage points, more than increase 10",
    ),
    "MaxInitializationTime": (
        build_samples(10, cpu=[1.0]),
        build_steps([1.0] * 5, begin=3000.0),
        {"threshold": "10"},
        1,
        "the first step began 50 minutes after the first metric, more than threshold 10",
    ),
    "StepOutlier": (
        [],
        build_steps(([0.1] * 9 + [0.5]) * 20),
        {},
        1,
        "20 of 195 steps (TRAIN) last more than 3 deviations longer than the median of 0.1 s",
    ),
    "SlowDataLoading": (
        [],
        wait_for_data(0.3, 0.1),
        {},
        7,
        "waiting for 149 batches takes 75 % of the time, more than threshold 50 %",
    ),
    "SmallBatches": (
        [],
        build_steps([0.001] * 150 + [0.02] * 50),
        {},
        1,
        "an undisturbed step of 200 lasts 1 ms, below threshold 5 ms",
    ),
    "Dataloader": (
        build_samples(3, cpu=[1.0] * 8),
        load(1),
        {},
        1,
        "1 process loaded data at once on 8 cores: 12.5 %, below min_threshold 70 %",
    ),
}


@pytest.mark.parametrize("name", SICK)
def test_a_rule_finds_what_it_is_for(name: str) -> None:
    samples, events, given, triggered, text = SICK[name]
    rule = run(name, samples, events, **given)
    verdict = conclude(rule)
    assert verdict.status == "IssuesFound"
    assert text in verdict.details
    assert rule.triggered == triggered
    assert rule.advice
    assert all(line in verdict.details for line in rule.advice)


@pytest.mark.parametrize("name", list_profiler_rules())
def test_a_healthy_job_is_found_by_none(name: str) -> None:
    given = {"patience": PATIENCE} if "patience" in {each.name for each in find_profiler_rule(name).parameters} else {}
    given |= {"window": "20"} if "window" in {each.name for each in find_profiler_rule(name).parameters} else {}
    steps = build_steps([0.1 + at % 7 / 1000 for at in range(500)], begin=20.0)
    verdict = conclude(run(name, HEALTHY, [*load(2), *wait_for_data(0.01, 0.1), *steps], **given))
    assert verdict.status == "NoIssuesFound"
    assert verdict.details.startswith(f"Rule {name} found no issue in ")
    assert "Nothing was judged" not in verdict.details


@pytest.mark.parametrize("name", [name for name, rule in list_profiler_rules().items() if rule().needs_gpu])
def test_without_a_gpu_a_remark_says_so(name: str) -> None:
    verdict = conclude(run(name, build_samples(2000, cpu=[99.0], wait=[99.0], memory=[50.0])))
    assert verdict.status == "NoIssuesFound"
    assert "There was no GPU" in verdict.details


def test_six_rules_need_a_gpu() -> None:
    assert [name for name, rule in list_profiler_rules().items() if rule().needs_gpu] == [
        "BatchSize", "CPUBottleneck", "GPUMemoryIncrease", "IOBottleneck", "LoadBalancing", "LowGPUUtilization",
    ]  # fmt: skip


def test_a_job_shorter_than_the_patience_is_not_judged() -> None:
    verdict = conclude(run("CPUBottleneck", build_samples(400, cpu=[95.0], gpu=[5.0])))
    assert verdict.status == "NoIssuesFound"
    assert "it takes 1020 data points of a node, and there were 400. Lower patience" in verdict.details


def test_a_short_job_is_judged_by_what_there_is() -> None:
    # Sixty samples: its first half, in which cores idle, is left out.
    busy = run("AllCoresBusy", build_samples(60, cpu=lambda at: [2.0 if at < 30 else 99.0] * 2))
    assert "in 100 % of 30 data points" in busy.findings[0].text
    healthy = run("AllCoresBusy", build_samples(60, cpu=[60.0, 80.0]))
    assert conclude(healthy).details == "Rule AllCoresBusy found no issue in 60 data points."
    # Ten samples after the patience are too few for a share of their own.
    assert "in 100 % of 55 data points" in run("AllCoresBusy", build_samples(110, cpu=[99.0])).findings[0].text
    lacks = conclude(run("AllCoresBusy", build_samples(15, cpu=[99.0]), patience="1")).details
    assert "Nothing was judged: it takes 20 data points of a node, and there were 15." in lacks
    lacks = conclude(run("AllCoresBusy", build_samples(19, cpu=[99.0]))).details
    assert "Nothing was judged: it takes 20 data points of a node, and there were 19." in lacks


@pytest.mark.parametrize(
    ("name", "events", "lacks"),
    [
        ("SmallBatches", build_steps([0.001] * 99), "it takes 100 steps of a process, and there were 99."),
        ("StepOutlier", build_steps([0.1] * 15), "it takes 16 steps of a process, and there were 15."),
        ("SlowDataLoading", load(2), "it takes 10 batches of a process, and there was 1. Raise NumSteps of Data"),
    ],
)
def test_events_that_are_too_few_are_reported(name: str, events: list[TraceEvent], lacks: str) -> None:
    assert f"Nothing was judged: {lacks}" in conclude(run(name, (), events)).details


@pytest.mark.parametrize(
    ("name", "sick", "healthy"),
    [
        ("CPUBottleneck", {"cpu": [99.0], "gpu": [1.0]}, {"cpu": [50.0], "gpu": [90.0]}),
        ("IOBottleneck", {"wait": [99.0], "gpu": [1.0]}, {"wait": [0.0], "gpu": [90.0]}),
        ("LoadBalancing", {"gpu": [1.0, 90.0]}, {"gpu": [90.0, 90.0]}),
        ("AllCoresBusy", {"cpu": [99.0]}, {"cpu": [50.0]}),
        ("LowGPUUtilization", {"gpu": [1.0]}, {"gpu": [90.0]}),
    ],
)
def test_a_short_pause_after_the_patience_is_not_an_issue(
    name: str, sick: dict[str, Any], healthy: dict[str, Any]
) -> None:
    """A first judgement of fewer samples than a rule takes would accuse a training that has just saved its model."""
    pause = build_samples(12, begin=49, **sick)
    samples = [*build_samples(49, **healthy), *pause, *build_samples(600, begin=61, **healthy)]
    rule = run(name, samples, patience="49")
    assert conclude(rule).status == "NoIssuesFound"


def test_the_first_batch_of_a_loader_is_left_out() -> None:
    waits = [TraceEvent("0-algo-1", "DataLoaderIter", "n", 0.0, 50.0, {})]
    waits += [TraceEvent("0-algo-1", "DataLoaderIter", "n", 50.0 + at, 0.1, {}) for at in range(20)]
    assert conclude(run("SlowDataLoading", (), waits)).status == "NoIssuesFound"


def test_a_late_first_step_is_found_before_the_end() -> None:
    rule = find_profiler_rule("MaxInitializationTime")(threshold="1")
    (step,) = build_steps([1.0], begin=90.0)
    rule.add_event(step)
    assert not rule.findings  # the first metric has not come
    rule.add_sample(build_samples(1, cpu=[1.0])[0])
    assert conclude(rule).status == "IssuesFound"
    rule.finish()
    assert [finding.value for finding in rule.findings] == [1.5]


def test_batches_that_take_long_are_judged_over_several_scans() -> None:
    waits = [TraceEvent("0-algo-1", "DataLoaderIter", "n", 20.0 * at, 15.0, {}) for at in range(12)]
    assert (
        "waiting for 10 batches takes 75 %"
        in run("SlowDataLoading", (), waits, scan_interval_us="30000000").findings[0].text
    )


@pytest.mark.parametrize("name", list_profiler_rules())
def test_nothing_at_all_is_reported(name: str) -> None:
    verdict = conclude(run(name))
    assert verdict.status == "NoIssuesFound"
    assert verdict.details.startswith(f"Rule {name} had nothing to judge: it looks at ")


def test_a_gpu_that_stops_and_goes_fluctuates() -> None:
    samples = build_samples(400, gpu=lambda at: [95.0 if at % 3 else 0.0])
    rule = run("LowGPUUtilization", samples, patience=PATIENCE, window="60")
    assert "gpu0 is busy and idle by turns: its percentiles are 95 % (95th) and 0 % (5th)" in rule.findings[0].text


def test_nodes_are_judged_apart() -> None:
    sick = build_samples(400, "algo-2", cpu=[95.0], gpu=[5.0])
    rule = run("CPUBottleneck", [*HEALTHY, *sick], patience=PATIENCE)
    assert {finding.node for finding in rule.findings} == {"algo-2"}


def test_two_kinds_of_memory_are_judged_by_the_fuller_one() -> None:
    samples = build_samples(400, memory=lambda at: [10.0, 20.0 + at / 10])
    assert run("MemoryGrowth", samples).triggered


def test_a_clock_that_jumps_makes_no_firing_of_its_own() -> None:
    jumps = [*build_samples(150, cpu=[50.0], gpu=[90.0]), *build_samples(150, begin=10**7, cpu=[50.0], gpu=[90.0])]
    jumps += build_samples(150, cpu=[95.0], gpu=[5.0])
    rule = run("CPUBottleneck", jumps, patience=PATIENCE, threshold="40")
    assert rule.triggered == 1
    assert rule.data_points == 450


def test_a_clock_set_back_delays_no_verdict() -> None:
    rule = find_profiler_rule("CPUBottleneck")(patience=PATIENCE)
    for sample in build_samples(150, begin=10_000, cpu=[50.0], gpu=[90.0]):
        rule.add_sample(sample)
    for sample in build_samples(150, begin=6_400, cpu=[95.0], gpu=[5.0]):
        rule.add_sample(sample)
    assert rule.triggered == 2


def test_too_many_loader_processes_and_unknown_cores() -> None:
    crowd = run("Dataloader", build_samples(2, cpu=[1.0, 1.0]), load(5, of_worker=True))
    assert "5 processes loaded data at once on 2 cores: 250 %, above max_threshold 200 %" in crowd.findings[0].text
    assert "How many cores there are is not known of algo-1" in conclude(run("Dataloader", (), load(5))).details


def test_a_loader_without_processes_is_an_issue_only_where_steps_wait() -> None:
    cores = build_samples(2, cpu=[1.0, 1.0])
    assert run("Dataloader", cores, wait_for_data(0.01, 0.1)).triggered == 0
    assert run("Dataloader", cores, wait_for_data(0.3, 0.1)[:9]).triggered == 0
    slow = run("Dataloader", cores, wait_for_data(0.3, 0.1))
    assert "0 processes loaded data at once on 2 cores: 0 %, below" in slow.findings[0].text
    assert "the training waits for data 75 % of its time" in slow.findings[0].text


def test_the_processes_of_one_epoch_after_the_other_are_not_added_up() -> None:
    epochs = [
        TraceEvent("0-algo-1", "DataLoaderWorker", "w", 10.0 * epoch, 9.9, {}) for epoch in range(7) for _ in range(2)
    ]
    assert run("Dataloader", build_samples(2, cpu=[1.0, 1.0]), epochs).triggered == 0


def test_a_mode_chooses_the_steps() -> None:
    slow = build_steps(([0.1] * 9 + [0.5]) * 20, "Step:ModeKeys.EVAL")
    assert run("StepOutlier", (), slow, mode="EVAL").triggered == 1
    assert run("StepOutlier", (), slow, mode="None").triggered == 1
    assert run("StepOutlier", (), slow, mode="TRAIN").data_points == 0


def test_slow_steps_are_found_beside_compiling_and_whatever_the_scan() -> None:
    keras = [3.1, *[0.3 if at % 20 == 0 else 0.1 for at in range(1, 300)]]
    keras[10] = 1.57
    found = run("StepOutlier", (), build_steps(keras))
    assert "15 of 295 steps (TRAIN)" in found.findings[0].text
    # A hundred slow steps of two thousand, of which a scan of one second holds one or none.
    rare = build_steps([0.5 if at % 20 == 19 else 0.1 for at in range(2000)])
    assert run("StepOutlier", (), rare, scan_interval_us="1000000").findings[-1].value == 100
    assert run("StepOutlier", (), rare, n_outliers="100").triggered == 0


def test_uneven_steps_and_a_slow_begin_are_not_outliers() -> None:
    assert run("StepOutlier", (), build_steps([30.0, 2.0, 1.0, *[0.1] * 300]), n_outliers="0").triggered == 0
    compiling = [*build_steps([0.1] * 300), *build_steps([1.5])]
    compiling[-1] = replace(compiling[-1], args={"step_num": "10", "compiles": True})
    assert run("StepOutlier", (), compiling, n_outliers="0").triggered == 0
    jitter = [0.1 + at % 7 / 1000 for at in range(3000)]
    assert run("StepOutlier", (), build_steps(jitter), n_outliers="0").triggered == 0


def test_waiting_for_data_of_both_frameworks_and_of_few_batches() -> None:
    assert run("SlowDataLoading", (), wait_for_data(0.3, 0.1, "DataIterator")).triggered == 7
    assert run("SlowDataLoading", (), wait_for_data(0.1, 0.3)).triggered == 0
    assert run("SlowDataLoading", (), wait_for_data(0.3, 0.1)[:9]).triggered == 0


def test_short_steps_of_evaluation_are_no_small_batches() -> None:
    assert run("SmallBatches", (), build_steps([0.001] * 200, "Step:ModeKeys.EVAL")).data_points == 0
    assert run("SmallBatches", (), build_steps([0.001] * 200, "Step:ModeKeys.GLOBAL")).triggered == 1
    assert run("SmallBatches", (), build_steps([0.001] * 99)).triggered == 0


def test_no_step_at_all_is_too_late() -> None:
    samples = build_samples(2, memory=lambda at: [5.0 + at])
    events = [TraceEvent("0-algo-1", "DataLoaderIter", "n", 7200.0, 1.0, {})]
    assert "no step had begun 120 minutes" in run("MaxInitializationTime", samples, events).findings[0].text


def test_overall_usage_and_phases_are_reported(tmp_path: Path) -> None:
    usage = run("OverallSystemUsage", build_samples(101, cpu=lambda at: [float(at), float(at)], network=[3.0, 4.0]))
    assert usage.describe_details()["Usage"] == [
        {"node": "algo-1", "metric": "CPU", "unit": "percent", "max": 100, "p99": 99, "p95": 95, "p50": 50, "min": 0},
        {"node": "algo-1", "metric": "Network", "unit": "bytes per second", **dict.fromkeys(
            ("max", "p99", "p95", "p50", "min"), 7)},
    ]  # fmt: skip
    assert "algo-1 CPU 95 percent" in conclude(usage).details
    events = [*build_steps([1.0, 1.0], "Forward"), *build_steps([3.0], "Backward(post-forward)")]
    phases = run("OverallFrameworkMetrics", (), events)
    assert phases.describe_details() == {"Seconds": {"Backward(post-forward)": 3.0, "Forward": 2.0}}
    write_report(phases, tmp_path, ProfiledJob("job", "nowhere"))
    written = json.loads((tmp_path / "profiler-output/profiler-reports/OverallFrameworkMetrics.json").read_text())
    assert written["RuleTriggered"] == 0
    assert written["Datapoints"] == 3
    assert written["RuleParameters"] == "scan_interval_us:60000000"


def test_unknown_rules_and_parameters_are_refused_in_words() -> None:
    with pytest.raises(
        SMDebugValueError, match=r"There is no profiler rule 'ProfilerRepor'\. The profiler rules are: All"
    ):
        find_profiler_rule("ProfilerRepor")
    with pytest.raises(SMDebugValueError, match="threshold is '101', expected a number from 0 to 100"):
        find_profiler_rule("CPUBottleneck")(threshold="101")
    with pytest.raises(SMDebugValueError, match="there is no parameter 'treshold'"):
        find_profiler_rule("CPUBottleneck")(treshold="10")
    with pytest.raises(SMDebugValueError, match="Rule Dataloader: min_threshold 300 is above max_threshold 200"):
        find_profiler_rule("Dataloader")(min_threshold="300")


@pytest.mark.parametrize("name", list_profiler_rules())
def test_each_rules_formula_has_an_example(name: str) -> None:
    package = "smdebug.rules.profiling"
    shared = {
        "CPUBottleneck": f"{package}.bottleneck",
        "IOBottleneck": f"{package}.bottleneck",
        "GPUMemoryIncrease": f"{package}.builtin.memory_growth",
    }
    module = shared.get(name, find_profiler_rule(name).__module__)
    found = doctest.DocTestFinder().find(import_module(module))
    assert any(each.examples for each in found)
