"""Hyperparameter search and early stopping of tuning jobs, by optuna.

Nothing is kept here: a study is made anew from the training jobs in the store, so that a restart loses none.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optuna import Study
    from optuna.distributions import BaseDistribution

    from emulator.jobs.model.tuning_job import TuningJob

# With fewer, the median says nothing.
_TRAININGS_BEFORE_STOPPING = 3
_REVERSED = "ReverseLogarithmic"


@dataclass(frozen=True, slots=True)
class Trial:
    """One training that there was, or is.

    Attributes:
        parameters: those that are tuned, as text.
        running: whether it goes on.
        value: the objective at its end.
        values: the objective while it trained, first to last.
    """

    parameters: Mapping[str, str]
    running: bool
    value: float | None
    values: Sequence[float] = ()


def count_combinations(job: TuningJob, definition: Mapping[str, Any]) -> int:
    """How many there are, each parameter having the values of a category."""
    return math.prod(len(each["Values"]) for _, each in job.list_ranges(definition).values())


def suggest(job: TuningJob, definition: Mapping[str, Any], trials: Sequence[Trial]) -> dict[str, str] | None:
    """Choose what to try next; None where a grid has nothing left.

    Args:
        job: whose strategy and ranges count.
        definition: of the training job.
        trials: those that the same definition had so far, and those of parent jobs.
    """
    ranges = job.list_ranges(definition)
    if job.configuration["Strategy"] == "Grid":
        values = itertools.product(*(each["Values"] for _, each in ranges.values()))
        chosen = next(itertools.islice(values, len(trials), None), None)
        return None if chosen is None else dict(zip(ranges, chosen, strict=True))
    study, distributions = _build_study(job, definition, trials)
    found = study.ask(distributions).params
    return {name: _encode(ranges[name][1], found[name]) for name in ranges}


def is_hopeless(job: TuningJob, definition: Mapping[str, Any], trials: Sequence[Trial], at: int) -> bool:
    """Whether trial number ``at``, which runs, is to be stopped for what the others had at its point.

    Hyperband stops those that are not among the best of their bracket; TrainingJobEarlyStoppingType Auto those that are
    worse than the median.
    """
    import optuna

    if not trials[at].values:
        return False
    _quieten()
    strategy = job.configuration.get("StrategyConfig", {}).get("HyperbandStrategyConfig", {})
    pruner: optuna.pruners.BasePruner = (
        optuna.pruners.HyperbandPruner(strategy.get("MinResource", 1), strategy.get("MaxResource", "auto"))
        if job.configuration["Strategy"] == "Hyperband"
        else optuna.pruners.MedianPruner(n_startup_trials=_TRAININGS_BEFORE_STOPPING)
    )
    direction = job.find_objective(definition)["Type"].lower()
    study = optuna.create_study(study_name=job.id, pruner=pruner, direction=direction)
    # Their numbers decide on Hyperband's brackets, and what each was judged by is kept for the next: all is replayed.
    asked = [study.ask() for _ in trials]
    for number in [*(other for other in range(len(trials)) if other != at), at]:
        hopeless = False
        for step, value in enumerate(trials[number].values, start=1):
            asked[number].report(value, step)
            hopeless = asked[number].should_prune()
        if number != at and not trials[number].running:
            result = trials[number].value
            study.tell(asked[number], result, state=None if result is not None else optuna.trial.TrialState.FAIL)
    return hopeless


def _quieten() -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)


def _build_study(
    job: TuningJob, definition: Mapping[str, Any], trials: Sequence[Trial]
) -> tuple[Study, dict[str, BaseDistribution]]:
    import optuna
    from optuna.trial import TrialState, create_trial

    _quieten()
    seed = (job.configuration.get("RandomSeed", int(job.id, 16)) + len(trials)) % 2**32
    sampler = (
        optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        if job.configuration["Strategy"] == "Bayesian"
        else optuna.samplers.RandomSampler(seed=seed)
    )
    direction = job.find_objective(definition)["Type"].lower()
    study = optuna.create_study(study_name=job.id, sampler=sampler, direction=direction)
    ranges = job.list_ranges(definition)
    distributions = {name: _build_distribution(*each) for name, each in ranges.items()}
    for trial in trials:
        state = TrialState.RUNNING if trial.running else TrialState.COMPLETE
        if not trial.running and trial.value is None:
            state = TrialState.FAIL
        params = {name: _decode(*ranges[name], trial.parameters[name], distributions[name]) for name in ranges}
        study.add_trial(
            create_trial(
                state=state,
                params=params,
                distributions=distributions,
                value=trial.value if state == TrialState.COMPLETE else None,
            )
        )
    return study, distributions


def _build_distribution(kind: str, each: Mapping[str, Any]) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if kind == "CategoricalParameterRanges":
        return CategoricalDistribution(each["Values"])
    scaling = each.get("ScalingType")
    if kind == "IntegerParameterRanges":
        return IntDistribution(int(each["MinValue"]), int(each["MaxValue"]), log=scaling == "Logarithmic")
    low, high = float(each["MinValue"]), float(each["MaxValue"])
    if scaling == _REVERSED:
        low, high = 1 - high, 1 - low
    return FloatDistribution(low, high, log=scaling in ("Logarithmic", _REVERSED))


def _encode(each: Mapping[str, Any], value: Any) -> str:
    """Spell a value as a training job gets it."""
    return str(1 - value if each.get("ScalingType") == _REVERSED else value)


def _decode(kind: str, each: Mapping[str, Any], text: str, distribution: Any) -> Any:
    """Read a value that a training job got, bounds and rounding as the distribution has them."""
    if kind == "CategoricalParameterRanges":
        return text if text in each["Values"] else each["Values"][0]
    number = float(text)
    if each.get("ScalingType") == _REVERSED:
        number = 1 - number
    number = min(max(number, distribution.low), distribution.high)
    return round(number) if kind == "IntegerParameterRanges" else number
