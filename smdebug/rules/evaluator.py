"""Rule container program: one rule, evaluated over one job's tensors.

    python -m smdebug.rules.evaluator

The program reads ruleconfig.json, whose path is in SMDEBUG_RULE_CONFIG_PATH, and evaluates each step of the run as it
is saved. It ends at the first step where the rule's condition is met, or when the job has ended. The exit code is 0
with the verdict IssuesFound or NoIssuesFound, 1 with Error, and 143 without a verdict after SIGTERM. A profiler rule
reads the job's profile instead, up to its end.
"""

import logging
import os
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from types import FrameType
from typing import Any

from smdebug.environment import S3_OUTAGE_WAIT_KEY
from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet, SMDebugError, SMDebugValueError
from smdebug.job_warnings import RULE_WITHOUT_COLLECTION, warn_user
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.rules.action.action import check_actions
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.container.requirements import REQUIREMENTS_FOLDER
from smdebug.rules.container.rule_config import (
    DEFAULT_RULE_CONFIG_PATH,
    RULE_CONFIG_PATH_ENV_STR,
    RuleConfig,
    read_rule_config,
)
from smdebug.rules.container.rule_preparation import load_custom_class, prepare_rule
from smdebug.rules.container.run_opening import wait_for_run
from smdebug.rules.container.verdict import (
    ERROR,
    ISSUES_FOUND,
    JUDGED_NOTHING,
    NO_ISSUES_FOUND,
    Verdict,
    write_verdict,
)
from smdebug.rules.no_issue import asked_in_vain, describe_no_issue
from smdebug.rules.profiling.evaluation import judge_profile
from smdebug.rules.profiling.profiler_rule import ProfilerRule
from smdebug.rules.report.rule_report import RuleReport
from smdebug.rules.rule import Finding, Rule
from smdebug.rules.rule_invoker import evaluate_steps
from smdebug.trials import create_trial

TERMINATED = 128 + signal.SIGTERM
# Time between two checks for new steps. A check of S3 costs a container about 3 ms and the service as much: checking
# twice as often, ten rules of one job would take most of a processor from the training.
POLL_INTERVAL_S = 0.1
# The service truncates a longer StatusDetails, and the advice is at its end.
MOST_DETAILS = 1024
# How long S3 may be unavailable, for example while the service that runs the jobs restarts, before the rule gives up.
S3_OUTAGE_WAIT_S = 300


def main() -> int:
    """Evaluate the container's rule; returns the exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    os.environ.setdefault(S3_OUTAGE_WAIT_KEY, str(S3_OUTAGE_WAIT_S))
    logger = get_logger()
    path = Path(os.environ.get(RULE_CONFIG_PATH_ENV_STR, DEFAULT_RULE_CONFIG_PATH))
    try:
        config = read_rule_config(path)
    except SMDebugValueError as error:
        logger.error("%s", error)  # noqa: TRY400 -- the message says it all
        return 1
    report = new_report(config)
    with tempfile.TemporaryDirectory(prefix="custom-rule-") as folder:
        verdict = judge(config, Path(folder), report)
    write_verdict(verdict, config.verdict_path)
    logger.info("%s: %s", verdict.status, verdict.details)
    # The verdict has already been written for its reader.
    try:
        report.write(verdict, config.output_path)
    except OSError as error:
        logger.error("The rule's report cannot be written: %s", error)  # noqa: TRY400 -- the message says it all
    return 1 if verdict.status == ERROR else 0


def new_report(config: RuleConfig) -> RuleReport:
    """Return the report of a rule that has not been evaluated yet."""
    return RuleReport(config.rule_to_invoke, config.configuration_name, config.training_job_name, config.parameters)


def judge(config: RuleConfig, source_folder: Path, report: RuleReport | None = None) -> Verdict:
    """Evaluate a rule until there is a verdict; any error becomes the verdict Error with its type and message.

    Args:
        config: what to evaluate.
        source_folder: empty folder for a custom rule's code.
        report: the report to fill during the evaluation.
    """
    logger = get_logger()
    report = new_report(config) if report is None else report
    try:
        config.output_path.mkdir(parents=True, exist_ok=True)
        check_actions(config.actions)
        custom = load_custom_class(config, source_folder)
        if config.profiler_uri is not None and (custom is None or issubclass(custom, ProfilerRule)):
            return judge_profile(config, config.profiler_uri, custom)
        prepared = prepare_rule(config, custom)
        logger.info("Rule %s waits for the tensors of %s.", config.rule_to_invoke, config.tensors_uri)
        if prepared.watches_silence and (fired := wait_for_run(config, prepared.build)) is not None:
            report.rule = fired
            return describe_firing(fired, RuleEvaluationConditionMet(fired.rule_name, -1))
        trial = create_trial(config.tensors_uri, name=config.training_job_name, poll_interval_s=POLL_INTERVAL_S)
        rule = report.rule = prepared.build(trial)
        if isinstance(rule, BuiltInRule):
            rule.output_name = f"rule-output/{config.configuration_name}/ of the job"
        return evaluate_to_end(rule, prepared.start_step, prepared.end_step, config.output_path, report)
    except Exception as error:
        # A user's rule may raise anything, and its author has to see the error.
        logger.exception("Rule %s ended with an error.", config.rule_to_invoke)
        return Verdict(ERROR, describe_error(error, source_folder))


def describe_error(error: Exception, source_folder: Path) -> str:
    """Return the type and the text of an error; in one line with file and line if it comes from a custom rule's code.

    >>> describe_error(ValueError("no such thing"), Path("/nowhere"))
    'ValueError: no such thing'
    """
    name, text = type(error).__name__, str(error)
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_relative_to(source_folder) and REQUIREMENTS_FOLDER not in file.parts:
            where = f" ({file.relative_to(source_folder)}, line {frame.lineno})"
            said = ": ".join(filter(None, (name, " ".join(text.split()))))
            return f"{said[: MOST_DETAILS - len(where)]}{where}"
    return f"{name}: {text}"


def evaluate_to_end(
    rule: Rule, start_step: int, end_step: int | None, output_dir: Path | None, report: RuleReport
) -> Verdict:
    """Call `evaluate`, and then write the rule's output to a folder.

    Raises:
        Exception: whatever the rule raises.
    """
    if isinstance(rule, BuiltInRule):
        rule.output_dir = output_dir
    verdict = evaluate(rule, start_step, end_step, report)
    if isinstance(rule, BuiltInRule):
        rule.finish()
    return verdict


def evaluate(rule: Rule, start_step: int = 0, end_step: int | None = None, report: RuleReport | None = None) -> Verdict:
    """Evaluate a rule step by step until its condition is met, end_step is reached or the job has ended.

    A run without steps gives the verdict Error, because there is nothing to judge. So does a run whose files are so
    damaged that no step can be read. If the steps lack what the rule inspects (its tensors were never saved, or its
    regex matches none), or are too few or too far apart for the rule to fire, the verdict is NoIssuesFound. The details
    then say that the rule judged nothing, and why. The log contains it once, as soon as it is known.

    Args:
        rule: the rule.
        start_step: first global step.
        end_step: global step to stop before; None: continue until the job has ended.
        report: the report that counts the steps.

    Raises:
        Exception: whatever the rule raises.
    """
    report = RuleReport(rule.rule_name, rule.rule_name, "", {}) if report is None else report
    lacking: SMDebugError | None = None
    inspected = 0
    try:
        for step, outcome in evaluate_steps(rule, start_step, end_step):
            met = isinstance(outcome, RuleEvaluationConditionMet)
            is_judged = met or outcome is None
            if isinstance(rule, BuiltInRule):
                with_values, inspected = rule.inspected > inspected, rule.inspected
            else:
                with_values = is_judged and not asked_in_vain(rule)
            mode = rule.base_trial.mode(step) or ModeKeys.GLOBAL
            report.count(step, mode, evaluated=is_judged, with_values=with_values)
            if isinstance(outcome, RuleEvaluationConditionMet):
                return describe_firing(rule, outcome)
            if outcome is not None:
                if lacking is None:
                    rule.logger.warning(
                        "Rule %s passes over step %d, and over others that lack the same: %s",
                        rule.rule_name,
                        step,
                        outcome,
                    )
                lacking = outcome
    except NoMoreData:
        # The training has ended, and all steps that it saved were evaluated.
        rule.logger.info("The training has ended; the last step was %s.", report.last_step)
    name, last, evaluated = rule.rule_name, report.last_step, report.evaluated
    if last is None:
        known = rule.base_trial.steps()
        saved = f"the steps saved are {known[0]} to {known[-1]}" if known else "the training saved no step"
        return Verdict(ERROR, f"Rule {name} had no step to evaluate: {saved}. Check the hook's save configuration.")
    if lacking is not None and not evaluated:
        # The message about a damaged or missing file has that file's error as its cause.
        status = NO_ISSUES_FOUND if lacking.__cause__ is None else ERROR
        opening = f"Rule {name}" if status == ERROR else f"Rule {name} {JUDGED_NOTHING} It"
        details = f"{opening} could evaluate no step. {type(lacking).__name__}: {lacking}"
        if status == NO_ISSUES_FOUND:
            # The log already has a warning, from the first of these steps.
            warn_user(RULE_WITHOUT_COLLECTION, "%s", details, level=logging.INFO)
        return Verdict(status, details)
    return Verdict(NO_ISSUES_FOUND, describe_no_issue(rule, report))


def describe_firing(rule: Rule, met: RuleEvaluationConditionMet) -> Verdict:
    """Return IssuesFound: AWS's sentence, then what the rule found, and what to do about it."""
    details = f"{type(met).__name__}: {met}"
    # A user's rule may use this attribute name for another purpose.
    found: Any = rule.finding
    if found:
        told = found.explain(MOST_DETAILS - len(details) - 1) if isinstance(found, Finding) else found
        details += f"\n{told}"
    return Verdict(ISSUES_FOUND, details, met.step)


def _terminate(signal_number: int, frame: FrameType | None) -> None:  # noqa: ARG001 -- a signal handler's signature
    raise SystemExit(TERMINATED)


def _exit(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that are still downloading are not waited for.
    os._exit(code)


if __name__ == "__main__":
    try:
        exit_code = main()
    except SystemExit as stop:
        exit_code = stop.code if isinstance(stop.code, int) else 1
    _exit(exit_code)
