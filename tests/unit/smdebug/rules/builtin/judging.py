"""Small runs, and a rule's answers at each of their steps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from smdebug.mode_keys import ModeKeys
from smdebug.rules.built_in_rule import BuiltInRule
from smdebug.rules.rule import Finding
from smdebug.trials import Trial, create_trial
from tests.unit.smdebug.runs import RunMaker

TRAIN, EVAL, PREDICT, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT, ModeKeys.GLOBAL


def write_run(
    folder: Path,
    steps: Sequence[Mapping[str, Any]],
    modes: Sequence[ModeKeys] | None = None,
    collections: Mapping[str, set[str]] | None = None,
) -> Trial:
    """A finished run of one worker; without modes all steps are GLOBAL."""
    run = RunMaker(folder, with_collections=collections is None)
    if collections is not None:
        run.write_collections(collections)
    counts: dict[ModeKeys, int] = {}
    for step, tensors in enumerate(steps):
        mode = GLOBAL if modes is None else modes[step]
        number = step if mode is GLOBAL else counts.get(mode, 0)
        counts[mode] = number + 1
        run.write_step(step, tensors, mode, number)
    run.end()
    return create_trial(str(folder))


def find_firing(rule: BuiltInRule) -> list[int]:
    """Global steps at which the rule fires, asked in order."""
    return [step for step in rule.base_trial.steps() if rule.invoke_at_step(step)]


def get_finding(rule: BuiltInRule) -> Finding:
    """What the rule found last."""
    assert rule.finding is not None
    return rule.finding
