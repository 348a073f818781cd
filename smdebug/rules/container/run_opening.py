"""Opening of a rule's runs: the judged one, which may be late, and others.

The judged run is compared with the others.
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from smdebug.config.collection_manager import CollectionManager
from smdebug.environment import DEFAULT_WORKER_NAME
from smdebug.exceptions import RuleEvaluationConditionMet, SMDebugValueError
from smdebug.format.locations import COLLECTIONS_SUFFIX
from smdebug.reading.run_files import LocalRunFiles
from smdebug.reading.run_steps import DEFAULT_POLL_INTERVAL_S
from smdebug.rules.container.rule_config import RuleConfig
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import build_idle_check
from smdebug.trials import Trial, create_trial
from smdebug.trials.create import open_files


class _NothingSaved(LocalRunFiles):
    """The files of a run that has not begun: one worker that has saved nothing."""

    def __init__(self) -> None:
        super().__init__(Path(os.devnull))

    def list_collections_files(self) -> list[str]:
        """Return the collections file of the worker."""
        return [f"{DEFAULT_WORKER_NAME}{COLLECTIONS_SUFFIX}"]

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Return no collections."""
        return [json.dumps(CollectionManager().to_json_dict()).encode() for _ in names]


def open_other_trials(config: RuleConfig) -> list[Trial]:
    """Return the runs to compare with.

    Raises:
        SMDebugValueError: a run does not exist, or its location is not known.
        SMDebugError: S3 cannot be read.
    """
    return [_open_other(given, config.locate_other_trial(given)) for given in config.other_trials]


def wait_for_run(config: RuleConfig, build: Callable[[Trial], Rule]) -> Rule | None:
    """Wait until the run has begun or the job has ended.

    Args:
        config: gives the location of the run.
        build: creates a rule that can fire because no step comes; it is evaluated during the wait.

    Returns:
        The rule, with its finding, if it fired; None otherwise.

    Raises:
        SMDebugError: S3 cannot be read.
    """
    files = open_files(config.tensors_uri)
    rule = build(Trial(_NothingSaved(), config.tensors_uri, config.training_job_name))
    ask = build_idle_check(rule)
    try:
        while not files.list_collections_files() and not files.has_ended():
            ask()
            time.sleep(DEFAULT_POLL_INTERVAL_S)
    except RuleEvaluationConditionMet:
        return rule
    return None


def _open_other(given: str, uri: str) -> Trial:
    files = open_files(uri)
    if not files.list_collections_files():
        raise SMDebugValueError(
            f"The other trial {given!r} does not exist: nothing was saved at {uri}. Name a training job that has saved "
            "tensors, or give their path as s3://bucket/prefix."
        )
    return create_trial(uri, name=given)
