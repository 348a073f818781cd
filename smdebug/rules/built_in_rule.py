"""Base of the built-in rules: parameters, tensor selection and findings."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.reading.stacks import StackRows
from smdebug.rules.parameters import Parameter, boolean, convert_parameters, regex, texts
from smdebug.rules.rule import Finding, Rule
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor
from smdebug.trials.trial import Trial

# Reductions by name and whether of the absolute values.
Reductions = Sequence[tuple[str, bool]]

# What is measured together is less exact than what is measured alone, by less than this part of it.
INEXACT = 1e-3
# The parameters of every rule that lets its user choose the tensors.
TENSOR_CHOICE = (texts("collection_names"), regex("tensor_regex", None))
LOSS_REGEX = TENSOR_CHOICE[1]
USE_LOSSES = boolean("use_losses_collection", default=True)

DEEP_LEARNING = ("PyTorch", "TensorFlow", "MXNet")
ALL_FRAMEWORKS = (*DEEP_LEARNING, "XGBoost")
NO_COLLECTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType({})
NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})


class BuiltInRule(Rule):
    """A rule that comes with smdebug.

    Args:
        base_trial: the run that is judged.
        other_trials: runs to compare with, where the rule compares.
        given: its parameters as text or as what the text stands for.

    Raises:
        SMDebugValueError: a parameter that the rule does not have, or a value that it cannot use.

    Attributes:
        parameters: the parameters that a rule has.
        values: their values by name.
        tensors: names, places and values of the run's tensors, step by step.
        inspected: how many tensors were looked at so far, over all steps and workers.
        output_dir: folder for files that the rule writes; None: the rule writes below the current folder.
        inspects: what is looked at, in words, for the message when nothing of it was found.
        needs: what must be saved of a tensor for the rule to judge it, for the message when it was not.
        frameworks: whose runs the rule is for.
        collections: what to save for it: collections by name, with their parameters.
        example: parameters of an example configuration.
        advice: what to do about what the rule found, three lines.
        configure: how to make the rule find what it looks at, in words.
        compares_runs: whether it needs other_trials.
        can_fire: whether it ever fires; the page of all rules shows how.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    inspects: ClassVar[str] = "tensors"
    needs: ClassVar[str] = "its value was not saved"
    frameworks: ClassVar[tuple[str, ...]] = DEEP_LEARNING
    collections: ClassVar[Mapping[str, Mapping[str, str]]] = NO_COLLECTIONS
    example: ClassVar[Mapping[str, str]] = NO_PARAMETERS
    advice: ClassVar[tuple[str, ...]] = ()
    configure: ClassVar[str] = ""
    compares_runs: ClassVar[bool] = False
    can_fire: ClassVar[bool] = True

    def __init__(self, base_trial: Trial, other_trials: Any = None, **given: Any) -> None:
        self.values = convert_parameters(type(self).__name__, self.parameters, given)
        super().__init__(base_trial, other_trials=other_trials)
        self.report["RuleParameters"] = str(self.values)
        self.inspected = 0
        self.output_dir: Path | None = None
        self.tensors = base_trial.step_tensors
        self._prepare()

    def _prepare(self) -> None:
        """Check parameters against each other, and set up what a rule remembers; nothing by default.

        Raises:
            SMDebugValueError: parameters that do not go together.
        """

    def finish(self) -> None:
        """To be called once after the last step that is evaluated: writes what the rule leaves behind."""

    def remark(self) -> str:
        """Return what has to be said beside a verdict that found no issue; nothing by default."""
        return ""

    def refuse(self, problem: str) -> SMDebugValueError:
        """Return the error for parameters that do not go together."""
        return SMDebugValueError(f"Rule {self.rule_name}: {problem}")

    def is_default(self, parameter: str) -> bool:
        """Whether a parameter has its default value, given or not."""
        (declared,) = (each for each in self.parameters if each.name == parameter)
        return bool(self.values[parameter] == declared.default)

    def require_choice(self) -> None:
        """Refuses parameters that choose no tensors, for rules that look at none by themselves."""
        if self.values["collection_names"] is None and self.values["tensor_regex"] is None:
            raise self.refuse("collection_names or tensor_regex is required: it says which tensors are looked at.")

    def chosen_names(self, step: int) -> list[str]:
        """Names that collection_names and tensor_regex choose at a global step; all where neither is given."""
        collections, patterns = self.values["collection_names"], self.values["tensor_regex"]
        if collections is None and patterns is None:
            return list(self.tensors.names(step))
        return self.tensors.choose(step, collections or (), patterns)

    def is_training_step(self, step: int) -> bool:
        """Whether a global step belongs to training, or to no mode."""
        return self.base_trial.mode(step) not in (ModeKeys.EVAL, ModeKeys.PREDICT)

    def inspect(
        self, places: Sequence[WorkerTensor], judge: Callable[[WorkerTensor], bool | None], reductions: Reductions = ()
    ) -> bool:
        """Judge one tensor after the other until one fires.

        Args:
            places: the tensors.
            judge: True (after `find`) if the rule fires, False if not, None if what was saved cannot tell.
            reductions: what is read in place of a tensor's value where it was saved.

        Raises:
            TensorUnavailableForStep: there are tensors, and none of them could be judged.
        """
        self.tensors.prefetch(places, reductions)
        judged = 0
        for place in places:
            answer = judge(place)
            if answer is None:
                continue
            judged += 1
            self.inspected += 1
            if answer:
                return True
        if places and not judged:
            first = places[0]
            raise TensorUnavailableForStep(
                first.name, first.step, has_reductions=bool(first.saved.reductions), detail=self.needs
            )
        return False

    def inspect_doubtful(
        self, rows: StackRows, step: int, doubtful: NDArray[np.bool_], judge: Callable[[WorkerTensor], bool | None]
    ) -> bool:
        """`inspect` after small tensors were measured together.

        Args:
            rows: the tensors.
            step: global step.
            doubtful: which of them are so near to firing, or so odd, that they have to be judged by themselves.
            judge: as for `inspect`; it is asked about these, and about those that could not be measured together.
        """
        names = rows.others + [rows.names[at] for at in np.flatnonzero(doubtful)]
        self.inspected += len(rows.names) + len(rows.others) - len(names)
        for place in self.tensors.saved(sorted(names), step):
            answer = judge(place)
            self.inspected += answer is not None
            if answer:
                return True
        return False

    def inspect_measured(
        self,
        names: Sequence[str],
        step: int,
        limits: Sequence[Limit],
        measure: Callable[[StackRows], NDArray[np.float64]],
        judge: Callable[[WorkerTensor], bool | None],
        reductions: Reductions = (),
    ) -> bool:
        """Judge tensors of which one number decides: small ones are measured together, the others one by one.

        Args:
            names: the tensors.
            step: global step.
            limits: what the number is measured against.
            measure: the number of each of many tensors, exact but for INEXACT; NaN or infinite where it has to be
                measured alone.
            judge: as for `inspect`; it is asked about tensors near a limit and about those not measured together.
            reductions: what is read in place of a tensor's value where it was saved.
        """
        rows = self.tensors.stack(names, step, tuple(reductions))
        if rows is None:
            return self.inspect(self.tensors.saved(names, step), judge, reductions)
        values = measure(rows)
        doubtful = ~np.isfinite(values)
        for limit in limits:
            self.watch_nearest(limit, step, rows, values)
            doubtful |= limit.is_passed_by(values, INEXACT)
        return self.inspect_doubtful(rows, step, doubtful, judge)

    def weigh(
        self, place: WorkerTensor, value: float, limits: Sequence[Limit], describe: Callable[[Limit], str]
    ) -> bool:
        """`weigh_number` for what one worker saved."""
        return self.weigh_number(place.name, place.step, value, limits, describe, place.worker)

    def weigh_number(
        self,
        tensor: str,
        step: int,
        value: float,
        limits: Sequence[Limit],
        describe: Callable[[Limit], str],
        worker: str | None = None,
    ) -> bool:
        """Keep a measured value for the report, and answer whether the rule fires; then it is its finding.

        Args:
            tensor: whose value it is.
            step: global step.
            value: what was measured.
            limits: what it is measured against.
            describe: says how the value lies to a limit that it has passed.
            worker: the worker whose tensor it is; None: that of all.
        """
        for limit in limits:
            self.watch_limit(limit, step, value, tensor, worker)
        for limit in limits:
            if limit.is_passed_by(value):
                return self.find(tensor, step, value, limit.threshold, describe(limit), worker)
        return False

    def watch_limit(self, limit: Limit, step: int, value: float, tensor: str, worker: str | None = None) -> None:
        """`watch` for a value that is measured against a limit."""
        self.watch(limit.quantity, step, value, limit.threshold, fires=limit.fires, tensor=tensor, worker=worker)

    def watch_nearest(self, limit: Limit, step: int, rows: StackRows, values: NDArray[np.float64]) -> None:
        """`watch` for the one of many tensors that is nearest to firing; NaN is left to who judges it."""
        known = np.where(np.isnan(values), np.inf if limit.fires == "below" else -np.inf, values)
        at = int(known.argmin() if limit.fires == "below" else known.argmax())
        if not np.isnan(values[at]):
            self.watch_limit(limit, step, float(values[at]), rows.names[at], rows.stack.worker)

    def find(
        self, tensor: str, step: int, value: float, threshold: float | None, text: str, worker: str | None = None
    ) -> bool:
        """Keep what was found and answer True; see `Finding` for the arguments."""
        mode, mode_step = self.base_trial.mode_modestep(step)
        self.finding = Finding(tensor, step, mode, mode_step, value, threshold, text, worker, self.advice)
        return True
