"""Six profiled trainings by the SageMaker SDK (version 2): one healthy, five not.

Each of the five is judged by the rule that finds its fault.

An ordinary SDK script, which takes three arguments: the bucket, what the jobs' names begin with, and how many seconds
the training with a long start may take to begin (20). It prints the names of the jobs, and does not wait for them.
"""

import sys
from pathlib import Path

from sagemaker.debugger import DataloaderProfilingConfig, FrameworkProfile, ProfilerConfig, ProfilerRule, rule_configs
from sagemaker.pytorch import PyTorch
from smdebug_rulesconfig.profiler_rules.rules import ProfilerRuleBase

# A job of minutes is judged as a whole.
WHOLE = 3600 * 1_000_000


# The emulator's own rules, which need no GPU. The SDK does not know them: their names are the classes'.
class SlowDataLoading(ProfilerRuleBase): ...


class SmallBatches(ProfilerRuleBase): ...


class MemoryGrowth(ProfilerRuleBase): ...


def build_rules(seconds: float) -> dict[str, ProfilerRule]:
    """The rule that finds each mistake, set for a job of some seconds."""
    configs = {
        "slow_data": SlowDataLoading(threshold=50, scan_interval_us=WHOLE),
        "tiny_batches": SmallBatches(threshold=8, scan_interval_us=WHOLE),
        "growing_memory": MemoryGrowth(increase=6, patience=1, window=5, scan_interval_us=500_000),
        "slow_steps": rule_configs.StepOutlier(stddev=20, n_outliers=8, scan_interval_us=WHOLE),
        "long_start": rule_configs.MaxInitializationTime(threshold=seconds / 60, scan_interval_us=WHOLE),
    }
    return {mistake: ProfilerRule.sagemaker(config) for mistake, config in configs.items()}


def main(bucket: str, prefix: str, seconds: str = "20") -> None:
    rules = build_rules(float(seconds))
    # How long a healthy start takes depends on the machine: this one is as it comes.
    default_start = ProfilerRule.sagemaker(rule_configs.MaxInitializationTime())
    healthy = [
        rules["slow_data"],
        rules["tiny_batches"],
        rules["growing_memory"],
        rules["slow_steps"],
        default_start,
    ]
    # The one that takes longest goes first.
    for mistake in sorted([*rules, "none"], key=lambda name: name != "long_start"):
        estimator = PyTorch(
            entry_point="train.py",
            source_dir=str(Path(__file__).parent),
            role="arn:aws:iam::123456789012:role/ProfiledTraining",
            instance_count=1,
            instance_type="ml.m5.large",
            framework_version="2.8.0",
            py_version="py312",
            hyperparameters={"mistake": mistake, "start-seconds": 1.25 * float(seconds) + 1},
            output_path=f"s3://{bucket}/output",
            profiler_config=ProfilerConfig(
                system_monitor_interval_millis=100,
                framework_profile_params=FrameworkProfile(
                    dataloader_profiling_config=DataloaderProfilingConfig(start_step=0, num_steps=100_000)
                ),
            ),
            rules=healthy if mistake == "none" else [rules[mistake]],
        )
        name = f"{prefix}-{mistake.replace('_', '-')}"
        estimator.fit(wait=False, job_name=name)
        print(mistake, name)


if __name__ == "__main__":
    main(*sys.argv[1:])
