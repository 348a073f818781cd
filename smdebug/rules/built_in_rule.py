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

# Each reduction as its name and whether it is of the absolute values.
Reductions = Sequence[tuple[str, bool]]

# Measuring tensors together is less exact than measuring one alone, by less than this fraction of the value.
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
        base_trial: the run to judge.
        other_trials: runs to compare with, for rules that compare runs.
        given: the rule's parameters, as text or as converted values.

    Raises:
        SMDebugValueError: the rule does not have a parameter, or cannot use its value.

    Attributes:
        parameters: the parameters that the rule has.
        values: their values by name.
        tensors: names, locations and values of the run's tensors, step by step.
        inspected: the number of tensors inspected so far, over all steps and workers.
        output_dir: folder for the files that the rule writes; None: below the current folder.
        output_name: the name by which a job's owner finds that folder; empty outside a job.
        inspects: what the rule inspects, in words, for the message when the run has none of it.
        needs: what must be saved of a tensor for the rule to judge it, for the message when it was not saved.
        frameworks: the frameworks whose runs the rule can judge.
        collections: the collections to save for the rule, by name, with their parameters.
        example: parameters of an example configuration.
        advice: what to do about a finding, in three lines.
        configure: how to configure the rule so that it finds its tensors, in words.
        compares_runs: whether the rule needs other_trials.
        can_fire: whether the rule ever fires; the page of all rules shows how.
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
        self.output_name = ""
        self.tensors = base_trial.step_tensors
        self._prepare()

    def _prepare(self) -> None:
        """Check parameters against each other, and set up the rule's state; does nothing by default.

        Raises:
            SMDebugValueError: the parameters contradict each other.
        """

    def finish(self) -> None:
        """Write the rule's output; called once, after the last step that is evaluated."""

    def shortage(self) -> str:
        """Return why the rule could not have fired on what it inspected, and what to do; empty if it could have.

        Called only for a rule that inspected tensors and did not fire.
        """
        return "none of what it found could be measured." if self.can_fire and not self.watched_quantities else ""

    def remark(self) -> str:
        """Return a note to add to a verdict that found no issue; empty by default."""
        return ""

    def refuse(self, problem: str) -> SMDebugValueError:
        """Return the error for parameters that contradict each other."""
        return SMDebugValueError(f"Rule {self.rule_name}: {problem}")

    def is_default(self, parameter: str) -> bool:
        """Whether a parameter has its default value, given or not."""
        (declared,) = (each for each in self.parameters if each.name == parameter)
        return bool(self.values[parameter] == declared.default)

    def require_choice(self) -> None:
        """Raise an error if the parameters choose no tensors, for rules that have no default choice."""
        if self.values["collection_names"] is None and self.values["tensor_regex"] is None:
            raise self.refuse("collection_names or tensor_regex is required: it says which tensors are inspected.")

    def chosen_names(self, step: int) -> list[str]:
        """Return the names that collection_names and tensor_regex choose at a global step; all if neither is given."""
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
        """Judge one tensor after another until one fires.

        Args:
            places: the tensors.
            judge: returns True (after `find`) if the rule fires, False if not, None if the saved data cannot decide it.
            reductions: reductions to read instead of a tensor's value if they were saved.

        Raises:
            TensorUnavailableForStep: there are tensors, but none of them could be judged.
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
        """Judge the remaining tensors, as `inspect` does, after small ones were measured together.

        Args:
            rows: the tensors.
            step: global step.
            doubtful: which of them have to be judged one by one, because they are close to firing or unusual.
            judge: as for `inspect`; called for these, and for the tensors that could not be measured together.
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
        """Judge tensors by one number each: small ones are measured together, the others one by one.

        Args:
            names: the tensors.
            step: global step.
            limits: the limits that the number is compared with.
            measure: returns the number of each of many tensors, exact except for INEXACT; NaN or infinite if a tensor
                has to be measured alone.
            judge: as for `inspect`; called for tensors close to a limit and for those not measured together.
            reductions: reductions to read instead of a tensor's value if they were saved.
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
        """Call `weigh_number` for the tensor of one worker."""
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
        """Record a measured value for the report, and return whether the rule fires; if it does, store the finding.

        Args:
            tensor: name of the tensor.
            step: global step.
            value: the measured value.
            limits: the limits that it is compared with.
            describe: returns the sentence that compares the value with a limit that it has passed.
            worker: the worker that saved the tensor; None: all workers.
        """
        for limit in limits:
            self.watch_limit(limit, step, value, tensor, worker)
        for limit in limits:
            if limit.is_passed_by(value):
                return self.find(tensor, step, value, limit.threshold, describe(limit), worker)
        return False

    def watch_limit(self, limit: Limit, step: int, value: float, tensor: str, worker: str | None = None) -> None:
        """Call `watch` for a value that is compared with a limit."""
        self.watch(limit.quantity, step, value, limit.threshold, fires=limit.fires, tensor=tensor, worker=worker)

    def watch_nearest(self, limit: Limit, step: int, rows: StackRows, values: NDArray[np.float64]) -> None:
        """Call `watch` for the one of many tensors that is closest to firing; NaN is left to the caller's judge."""
        known = np.where(np.isnan(values), np.inf if limit.fires == "below" else -np.inf, values)
        at = int(known.argmin() if limit.fires == "below" else known.argmax())
        if not np.isnan(values[at]):
            self.watch_limit(limit, step, float(values[at]), rows.names[at], rows.stack.worker)

    def find(
        self, tensor: str, step: int, value: float, threshold: float | None, text: str, worker: str | None = None
    ) -> bool:
        """Store the finding and return True; see `Finding` for the arguments."""
        mode, mode_step = self.base_trial.mode_modestep(step)
        self.finding = Finding(tensor, step, mode, mode_step, value, threshold, text, worker, self.advice)
        return True
