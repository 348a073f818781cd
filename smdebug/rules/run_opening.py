"""Opening the runs of a rule container: the one that is judged, which may not have begun, and those to compare with."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from smdebug.exceptions import RuleEvaluationConditionMet, SMDebugValueError
from smdebug.rules.rule_invoker import build_idle_check
from smdebug.trials import create_trial
from smdebug.trials.create import open_files
from smdebug.trials.trial import DEFAULT_POLL_INTERVAL_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from smdebug.reading.run_files import RunFiles
    from smdebug.rules.rule import Rule
    from smdebug.rules.rule_config import RuleConfig
    from smdebug.trials import Trial


class RuleFiredEarly(Exception):  # noqa: N818 -- an event, not an error
    """A rule fired before the run that it watches had begun; `rule` has the finding."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(rule.rule_name)
        self.rule = rule


class RunToCome:
    """Stands in for a run that nothing was saved of: enough to make a rule that is asked about the waiting."""

    def __init__(self, config: RuleConfig, files: RunFiles) -> None:
        self.name = config.training_job_name
        self.path = config.tensors_uri
        self.files = files

    def mode_modestep(self, global_step: int) -> tuple[None, None]:  # noqa: ARG002 -- as a trial's
        """No step was seen."""
        return None, None


def open_other_trials(config: RuleConfig) -> list[Trial]:
    """The runs to compare with.

    Raises:
        SMDebugValueError: a run is not there, or where it is cannot be told.
        SMDebugError: S3 cannot be read.
    """
    return [_open_other(given, config.locate_other_trial(given)) for given in config.other_trials]


def wait_for_run(config: RuleConfig, build: Callable[[Trial], Rule]) -> None:
    """Waits until the run has begun, or the job has ended; a rule that watches for silence is asked meanwhile.

    Args:
        config: where the run will be.
        build: makes the rule.

    Raises:
        RuleFiredEarly: the rule fires, because nothing comes.
        SMDebugError: S3 cannot be read.
    """
    files = open_files(config.tensors_uri)
    rule = build(cast("Trial", RunToCome(config, files)))
    ask = build_idle_check(rule)
    try:
        while not files.list_collections_files() and not files.has_ended():
            ask()
            time.sleep(DEFAULT_POLL_INTERVAL_S)
    except RuleEvaluationConditionMet as met:
        raise RuleFiredEarly(rule) from met


def _open_other(given: str, uri: str) -> Trial:
    files = open_files(uri)
    if not files.list_collections_files():
        raise SMDebugValueError(
            f"The other trial {given!r} does not exist: nothing was saved at {uri}. Name a training job that has saved "
            "tensors, or give their path as s3://bucket/prefix."
        )
    return create_trial(uri, name=given)
