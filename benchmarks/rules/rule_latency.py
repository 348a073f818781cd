"""Rule latency, ten rules on one job. Goal: median under 0.5 s on 2 cores.

The latency of each rule is the time from a step's index in S3 to the verdict.

The job does not train. When its ten rule containers wait for steps, this process writes steps to the job's prefix in
S3: healthy steps with 20 tensors of 64x64, and then a step at which the rules fire. The time is measured from the
response to the PutObject request of that step's index to the LastModifiedTime of each rule's IssuesFound.
"""

import statistics
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.shared.engine import back_ends
from benchmarks.shared.rule_job import (
    BUCKET,
    build_rule,
    open_emulator,
    read_rules,
    run_in_a_process,
    wait_until,
    waiting_job,
)
from sdk_compat.emulator_process import EmulatorProcess
from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.mode_keys import ModeKeys
from smdebug.writing.file_writer import FileWriter

ROUNDS = 4
HEALTHY_STEPS = 5
RULES = [
    build_rule("VanishingGradient", "VanishingGradient"),
    build_rule("VanishingGradient", "VanishingGradient-2", threshold="0.00001"),
    build_rule("ExplodingTensor", "ExplodingTensor"),
    build_rule("ExplodingTensor", "ExplodingTensor-2", collection_names="weights"),
    build_rule("AllZero", "AllZero", collection_names="gradients"),
    build_rule("AllZero", "AllZero-2", tensor_regex=".*", threshold="50"),
    build_rule("TensorVariance", "TensorVariance", tensor_regex=".*", min_threshold="0.01"),
    build_rule("TensorVariance", "TensorVariance-2", collection_names="gradients", min_threshold="0.01"),
    build_rule("WeightUpdateRatio", "WeightUpdateRatio", large_threshold="5"),
    build_rule("UnchangedTensor", "UnchangedTensor", tensor_regex="gradient", num_steps="2"),
]


def write_step(prefix: str, step: int, *, healthy: bool) -> None:
    random = np.random.default_rng(step)
    with FileWriter(prefix, "worker_0", step, mode=ModeKeys.TRAIN) as writer:
        for number in range(10):
            weight = random.standard_normal((64, 64), dtype=np.float32)
            gradient = random.standard_normal((64, 64), dtype=np.float32)
            if not healthy:
                gradient[:] = 0
                weight *= 100
                weight[0, 0] = np.nan if number == 9 else 1
            writer.write_tensor(weight, f"fc{number}.weight", mode=ModeKeys.TRAIN, mode_step=step)
            writer.write_tensor(gradient, f"gradient/fc{number}.weight", mode=ModeKeys.TRAIN, mode_step=step)


def time_verdicts(emulator: EmulatorProcess) -> list[float]:
    """Return the seconds from the index to the verdict, for each rule."""
    with waiting_job(emulator, RULES) as name:
        prefix = f"s3://{BUCKET}/tensors/{name}/debug-output"
        manager = CollectionManager()
        manager.add(Collection("weights", include_regex="^fc"))
        manager.add(Collection("gradients", include_regex="^gradient"))
        manager.set_num_workers(1)
        manager.export(prefix, "worker_0_collections.json")
        for step in range(HEALTHY_STEPS):
            write_step(prefix, step, healthy=True)
        # Wait until the rules have read the earlier steps, so that only one step is timed.
        time.sleep(2)
        # UnchangedTensor fires at the second of two equal steps, and all other rules at the first unhealthy step.
        write_step(prefix, HEALTHY_STEPS, healthy=False)
        first = time.time()
        wait_until(
            lambda: sum(rule["RuleEvaluationStatus"] == "IssuesFound" for rule in read_rules(emulator, name)) >= 9
        )
        write_step(prefix, HEALTHY_STEPS + 1, healthy=False)
        second = time.time()
        wait_until(lambda: all(rule["RuleEvaluationStatus"] == "IssuesFound" for rule in read_rules(emulator, name)))
        return [
            rule["LastModifiedTime"].timestamp()
            - (second if rule["RuleConfigurationName"] == "UnchangedTensor" else first)
            for rule in read_rules(emulator, name)
        ]


def measure_back_end(runtime: str) -> str:
    with open_emulator(runtime) as emulator:
        times = [seconds for _ in range(ROUNDS) for seconds in time_verdicts(emulator)]
    median = statistics.median(times)
    return (
        f"{runtime:<8} index in S3 → IssuesFound, {len(RULES)} rules on one job: median {median:.2f} s"
        f", slowest {max(times):.2f} s of {len(times)} verdicts (goal: median under 0.5 s)"
    )


def measure() -> Iterator[str]:
    for runtime in back_ends():
        yield run_in_a_process(measure_back_end, runtime)
