"""ruleconfig.json: what a rule container is told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from emulator.jobs.s3_paths import build_tensors_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.jobs.rule_evaluation import RuleEvaluation
    from emulator.jobs.store import JobStore
    from emulator.jobs.training_job import TrainingJob

# The rule parameters that name other runs, as the SDK and the plain API give them.
_OTHER_TRIALS = re.compile(r"other_trials|other_trial_\d+")


def build_rule_configuration(
    evaluation: RuleEvaluation,
    job: TrainingJob,
    other_jobs: Mapping[str, str],
    *,
    output_path: str,
    verdict_path: str,
) -> dict[str, Any]:
    """Content of ruleconfig.json, the file that tells the rule container what to do.

    Args:
        evaluation: of the rule.
        job: that it judges.
        other_jobs: where the tensors of the jobs to compare with are, by name.
        output_path: where the container leaves its files.
        verdict_path: where it leaves its verdict.
    """
    return {
        "TrainingJobName": job.name,
        "TrainingJobArn": job.arn,
        "ProcessingJobName": evaluation.name,
        "RuleConfigurationName": evaluation.rule_configuration_name,
        "RuleParameters": dict(evaluation.configuration.get("RuleParameters") or {}),
        "TensorsS3Uri": build_tensors_uri(job),
        "TensorsS3UriOfJobs": dict(other_jobs),
        "OutputPath": output_path,
        "VerdictPath": verdict_path,
    }


def find_other_jobs(store: JobStore, evaluation: RuleEvaluation) -> dict[str, str]:
    """Where the tensors of the training jobs are that the rule compares with, by name; unknown jobs are left out."""
    parameters: Mapping[str, str] = evaluation.configuration.get("RuleParameters") or {}
    given = ",".join(value for name, value in parameters.items() if _OTHER_TRIALS.fullmatch(name))
    names = {part.strip() for part in given.split(",") if part.strip()}
    jobs = (store.find_training_job(evaluation.region, name) for name in sorted(names))
    return {job.name: build_tensors_uri(job) for job in jobs if job is not None}
