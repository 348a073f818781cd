"""Evaluation of profiler rules over a job, until they fire or it ends."""

import math
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from smdebug.job_warnings import RULE_HAD_LITTLE_TO_JUDGE, warn_user
from smdebug.logger import get_logger
from smdebug.profiler.summary.job_profile import JobProfile
from smdebug.rules.container.rule_config import RuleConfig
from smdebug.rules.container.verdict import ISSUES_FOUND, NO_ISSUES_FOUND, Verdict
from smdebug.rules.profiling.builtin import find_profiler_rule
from smdebug.rules.profiling.profiler_rule import ProfiledJob, ProfilerRule
from smdebug.rules.wording import count_noun
from smdebug.storage.output import write_whole_file

# Time between two checks for files, which are written each minute and at the end.
_POLL_INTERVAL_S = 0.5
_MOST_DETAILS = 1024
# Minimum time between two reports of a running job.
_TELL_EVERY_S = 10


def judge_profile(config: RuleConfig, profile_path: str, rule_class: type[ProfilerRule] | None = None) -> Verdict:
    """Evaluate a profiler rule until it fires or its job has ended, and write its report.

    Args:
        config: what to evaluate.
        profile_path: the job's `profiler-output`, as a folder or `s3://bucket/prefix`.
        rule_class: a custom rule; None for the built-in rule that the configuration names.

    Raises:
        SMDebugValueError: there is no such rule, or it cannot use its parameters.
        ObjectStoreError: S3 refuses or cannot be reached.
        OSError: the report cannot be written.
    """
    rule = (rule_class or find_profiler_rule(config.rule_to_invoke))(**config.parameters)
    get_logger().info("Rule %s waits for the profile %s.", rule.name, profile_path)
    damaged = 0
    for job in follow_job(JobProfile(profile_path), rule, ProfiledJob(config.training_job_name, profile_path)):
        write_report(rule, config.output_path, job)
        damaged = job.damaged
        if rule.triggered and not rule.concludes_at_end:
            break
    verdict = conclude(rule, damaged)
    if not rule.data_points and not rule.needs_gpu:
        warn_user(RULE_HAD_LITTLE_TO_JUDGE, "%s", verdict.details)
    return verdict


def follow_job(profile: JobProfile, rule: ProfilerRule, job: ProfiledJob) -> Iterator[ProfiledJob]:
    """Pass a job's profile to a rule as it is written, until the job has ended.

    Yields:
        The state of the job: as soon as the rule has fired once more, at intervals with new data, and at the end.

    Raises:
        ObjectStoreError: S3 refuses or cannot be reached.
        OSError: a file cannot be read.
    """
    has_news, told_at, firings = False, -math.inf, 0
    while True:
        samples, events = profile.read_new()
        for sample in samples:
            rule.add_sample(sample)
        for event in events:
            rule.add_event(event)
        if profile.damaged > job.damaged:
            job = replace(job, damaged=profile.damaged)
            get_logger().warning("%s of the profile cannot be read and are skipped.", count_noun(job.damaged, "line"))
        if profile.ended:
            break
        has_news = has_news or bool(samples or events)
        if rule.triggered > firings or (has_news and time.monotonic() - told_at >= _TELL_EVERY_S):
            has_news, told_at, firings = False, time.monotonic(), rule.triggered
            yield job
        time.sleep(_POLL_INTERVAL_S)
    rule.finish()
    yield replace(job, ended=True)


def conclude(rule: ProfilerRule, damaged: int = 0) -> Verdict:
    """Return the verdict of a rule about what it has been given of a job."""
    looked = count_noun(rule.data_points, "data point")
    lost = f"{count_noun(damaged, 'damaged line')} skipped." if damaged else ""
    if rule.triggered:
        status = ISSUES_FOUND
        fired = f"RuleEvaluationConditionMet: Rule {rule.name} fired {count_noun(rule.triggered, 'time')} in {looked}."
        parts = [f"{fired} {rule.findings[0].text}.", *rule.advice, lost]
    else:
        status = NO_ISSUES_FOUND
        found = f"Rule {rule.name} found no issue in {looked}."
        nothing = f"Rule {rule.name} had nothing to judge: it looks at {rule.inspects}, and none came."
        parts = [
            found if rule.data_points else nothing,
            rule.remark() if rule.data_points or rule.needs_gpu else "",
            lost,
        ]
    return Verdict(status, "\n".join(filter(None, parts))[:_MOST_DETAILS])


def write_report(rule: ProfilerRule, folder: Path, job: ProfiledJob) -> None:
    """Write a rule's current output; each file is replaced as a whole, so that readers never see a part of it.

    Raises:
        OSError: the folder cannot be written to.
    """
    for name, content in rule.render_files(job).items():
        write_whole_file(str(folder / "profiler-output" / name), [content.encode()])
