"""Hyperparameter search and early stopping of tuning jobs, by optuna.

No state is kept: each study is rebuilt from the training jobs in the store, so that a restart loses nothing.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optuna import Study
    from optuna.distributions import BaseDistribution

    from emulator.jobs.model.tuning_job import TuningJob

# With fewer training jobs, the median has no meaning.
_TRAININGS_BEFORE_STOPPING = 3
_REVERSED = "ReverseLogarithmic"


class Trial(NamedTuple):
    """One running or ended training job.

    Attributes:
        parameters: The tuned hyperparameters, as text.
        running: Whether the training job still runs.
        value: The objective at its end.
        values: The objective during the training, first to last.
    """

    parameters: Mapping[str, str]
    running: bool
    value: float | None
    values: Sequence[float] = ()


def count_combinations(job: TuningJob, definition: Mapping[str, Any]) -> int:
    """Return the number of combinations of a definition whose parameters are all categorical."""
    return math.prod(len(each["Values"]) for _, each in job.list_ranges(definition).values())


def suggest(job: TuningJob, definition: Mapping[str, Any], trials: Sequence[Trial]) -> dict[str, str] | None:
    """Choose the hyperparameters to try next; return None if a grid is exhausted.

    Args:
        job: Tuning job with the strategy and ranges.
        definition: Definition of the training job.
        trials: Trials of the same definition so far, and those of parent jobs.
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
    """Whether the running trial at index ``at`` should be stopped, compared with the other trials at the same step.

    Hyperband stops trials that are not among the best of their bracket. TrainingJobEarlyStoppingType Auto stops trials
    that are worse than the median.
    """
    import optuna

    if not trials[at].values:
        return False
    _quieten()
    direction = job.find_objective(definition)["Type"].lower()
    if job.configuration["Strategy"] == "Hyperband":
        return _is_pruned_by_hyperband(job, direction, trials, at)
    study = optuna.create_study(
        pruner=optuna.pruners.MedianPruner(n_startup_trials=_TRAININGS_BEFORE_STOPPING), direction=direction
    )
    # The pruner compares a trial with those that are complete, and with nothing of its own past.
    for number, trial in enumerate(trials):
        if number != at and not trial.running and trial.value is not None:
            values = dict(enumerate(trial.values, start=1))
            study.add_trial(optuna.trial.create_trial(value=trial.value, intermediate_values=values))
    judged = study.ask()
    for step, value in enumerate(trials[at].values, start=1):
        judged.report(value, step)
    return bool(judged.should_prune())


def _is_pruned_by_hyperband(job: TuningJob, direction: str, trials: Sequence[Trial], at: int) -> bool:
    import optuna

    strategy = job.configuration.get("StrategyConfig", {}).get("HyperbandStrategyConfig", {})
    pruner = optuna.pruners.HyperbandPruner(strategy.get("MinResource", 1), strategy.get("MaxResource", "auto"))
    study = optuna.create_study(study_name=job.id, pruner=pruner, direction=direction)
    # All trials are replayed: their numbers decide on the brackets, and each judgement depends on earlier ones.
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
    return str(1 - value if each.get("ScalingType") == _REVERSED else value)


def _decode(kind: str, each: Mapping[str, Any], text: str, distribution: Any) -> Any:
    """Parse the value of a training job, limited and rounded to fit the distribution."""
    if kind == "CategoricalParameterRanges":
        return text if text in each["Values"] else each["Values"][0]
    number = float(text)
    if each.get("ScalingType") == _REVERSED:
        number = 1 - number
    number = min(max(number, distribution.low), distribution.high)
    return round(number) if kind == "IntegerParameterRanges" else number
