"""The base of the built-in rules: declared parameters, choosing and reading tensors, and saying what was found."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.mode_keys import ModeKeys
from smdebug.rules.parameters import Parameter, boolean, convert_parameters, regex, texts
from smdebug.rules.rule import Finding, Rule
from smdebug.rules.step_values import Place, share_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from smdebug.format.tensor_location import TensorLocation
    from smdebug.reading.step_index import SavedTensor
    from smdebug.rules.step_batch import Selection
    from smdebug.rules.watched_quantity import Side
    from smdebug.trials.trial import Trial

# What is measured together is less exact than what is measured alone, by less than this part of it.
INEXACT = 1e-3
# The parameters of every rule that lets its user choose the tensors.
TENSOR_CHOICE = (texts("collection_names"), regex("tensor_regex", None))
USE_LOSSES = boolean("use_losses_collection", default=True)

DEEP_LEARNING = ("PyTorch", "TensorFlow", "MXNet")
ALL_FRAMEWORKS = (*DEEP_LEARNING, "XGBoost")
NO_COLLECTIONS: Mapping[str, Mapping[str, str]] = MappingProxyType({})
NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})


def _compute_mean(array: NDArray[Any]) -> float:
    return float(np.mean(array, dtype=np.float64)) if array.size else math.nan


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
        inspected: how many tensors were looked at so far, over all steps and workers.
        output_dir: folder for files that the rule writes; None: the rule writes below the current folder.
        inspects: what is looked at, in words, for the message when nothing of it was found.
        needs: what must be saved of a tensor for the rule to judge it, for the message when it was not.
        frameworks: whose runs the rule is for.
        collections: what to save for it: collections by name, with their parameters.
        example: parameters of an example configuration.
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
    configure: ClassVar[str] = ""
    compares_runs: ClassVar[bool] = False
    can_fire: ClassVar[bool] = True

    def __init__(self, base_trial: Trial, other_trials: Any = None, **given: Any) -> None:
        self.values = convert_parameters(type(self).__name__, self.parameters, given)
        super().__init__(base_trial, other_trials=other_trials)
        self.report["RuleParameters"] = str(self.values)
        self.inspected = 0
        self.output_dir: Path | None = None
        self._shared = share_values(base_trial)

    def finish(self) -> None:
        """To be called once after the last step that is evaluated: writes what the rule leaves behind."""

    def refuse(self, problem: str) -> SMDebugValueError:
        """The error for parameters that do not go together."""
        return SMDebugValueError(f"Rule {self.rule_name}: {problem}")

    def is_default(self, parameter: str) -> bool:
        """Whether a parameter has its default value, given or not."""
        (declared,) = (each for each in self.parameters if each.name == parameter)
        return bool(self.values[parameter] == declared.default)

    def require_choice(self) -> None:
        """Refuses parameters that choose no tensors, for rules that look at none by themselves."""
        if self.values["collection_names"] is None and self.values["tensor_regex"] is None:
            raise self.refuse("collection_names or tensor_regex is required: it says which tensors are looked at.")

    def choose_names(self, step: int, collections: Iterable[str], patterns: Iterable[str] | None) -> list[str]:
        """Sorted names of the tensors at a global step that are in one of the collections or match a regex."""
        return list(self._shared.choose(self.base_trial, step, tuple(collections), tuple(patterns or ())))

    def chosen_names(self, step: int) -> list[str]:
        """Names that collection_names and tensor_regex choose at a global step; all where neither is given."""
        collections, patterns = self.values["collection_names"], self.values["tensor_regex"]
        if collections is None and patterns is None:
            return list(self.names_at(step))
        return self.choose_names(step, collections or (), patterns)

    def names_at(self, step: int) -> tuple[str, ...]:
        """Sorted names of all tensors at a global step; the same object as long as they stay the same."""
        return self._shared.names(self.base_trial, step)

    def saved(self, name: str, step: int) -> Mapping[str, SavedTensor]:
        """What each worker saved of a tensor at a global step, by worker."""
        return self.base_trial.tensor(name).saved(step)

    def places(self, names: Iterable[str], step: int) -> list[Place]:
        """What was saved of some tensors at a global step, worker by worker."""
        return self._shared.places(self.base_trial, names, step)

    def prefetch(self, places: Iterable[Place], reductions: Sequence[tuple[str, bool]] = ()) -> None:
        """Announces the reductions of these that were saved, or else the values, which will be read next."""
        locations: list[TensorLocation] = []
        for place in places:
            found = [place.saved.reductions[key] for key in reductions if key in place.saved.reductions]
            locations += found or ([place.saved.location] if place.saved.location is not None else [])
        self.prefetch_locations(locations)

    def prefetch_locations(self, locations: Iterable[TensorLocation]) -> None:
        """Announces records that will be read next; those at hand cost nothing."""
        self._shared.prefetch(self.base_trial, locations)

    def read_shared(self, name: str, location: TensorLocation, step: int) -> NDArray[Any]:
        """The array of a record, shared with other rules and so not to be written to; errors as read_location's."""
        return self._shared.read(self.base_trial, name, location, step)

    def read(self, place: Place) -> NDArray[Any] | None:
        """The value, shared with other rules and so not to be written to; None if none was saved, or it is text."""
        if place.saved.location is None:
            return None
        array = self.read_shared(place.name, place.saved.location, place.step)
        return None if array.dtype.kind == "U" else array

    def read_first(self, name: str, step: int) -> NDArray[Any] | None:
        """The value that the first worker saved, by name; None as in `read`."""
        places = self.places([name], step)
        return self.read(places[0]) if places else None

    def read_reduction(self, place: Place, name: str, of_absolute: bool = False) -> float | None:
        """A reduction as it was saved; None if it was not."""
        location = place.saved.reductions.get((name, of_absolute))
        if location is None:
            return None
        return float(np.squeeze(self.read_shared(place.name, location, place.step)))

    def read_mean(self, name: str, step: int) -> float:
        """The mean over a tensor's elements and workers at a global step; NaN where it is no finite number.

        Raises:
            TensorUnavailableForStep: it has neither values nor their mean there.
        """
        means: list[float] = []
        for place in self.places([name], step):
            mean = self.read_reduction(place, "mean")
            array = self.read(place) if mean is None else None
            if array is not None:
                # Most of what is asked for is one number, and np.mean takes ten times as long as item for that.
                single = array.size == 1 and array.dtype.kind in "fiub"
                mean = float(array.item()) if single else _compute_mean(array)
            if mean is not None:
                means.append(mean)
        if not means:
            raise TensorUnavailableForStep(name, step, detail="neither its value nor its mean was saved")
        return math.fsum(means) / len(means) if all(map(math.isfinite, means)) else math.nan

    def is_training_step(self, step: int) -> bool:
        """Whether a global step belongs to training, or to no mode."""
        return self.base_trial.mode(step) not in (ModeKeys.EVAL, ModeKeys.PREDICT)

    def earlier_steps(self, name: str, step: int, count: int) -> list[int]:
        """The last `count` global steps of the same mode up to this one at which a tensor was saved, rising."""
        tensor = self.base_trial.tensor(name)
        steps = self._shared.steps_before(self.base_trial, step, count)
        if all(map(tensor.has_step, steps)):
            return list(steps)
        mode, mode_step = self.base_trial.mode_modestep(step)
        if mode is None or mode_step is None:
            return []
        found = (self.base_trial.global_step(mode, each) for each in tensor.prev_steps(mode_step, count, mode))
        return [each for each in found if each is not None]

    def inspect(self, places: Sequence[Place], judge: Callable[[Place], bool | None]) -> bool:
        """Judges one tensor after the other until one fires.

        Args:
            places: the tensors.
            judge: True (after `find`) if the rule fires, False if not, None if what was saved cannot tell.

        Raises:
            TensorUnavailableForStep: there are tensors, and none of them could be judged.
        """
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

    def watch_at(
        self, quantity: str, place: Place, value: float, threshold: float | None, fires: Side = "above"
    ) -> None:
        """`watch` for what one worker saved."""
        self.watch(quantity, place.step, value, threshold, fires=fires, tensor=place.name, worker=place.worker)

    def select(self, names: Sequence[str], step: int, unless: tuple[tuple[str, bool], ...] = ()) -> Selection | None:
        """The small tensors among some, to be measured together; see `StepValues.select`."""
        return self._shared.select(self.base_trial, names, step, unless)

    def inspect_doubtful(
        self,
        selection: Selection,
        step: int,
        doubtful: NDArray[np.bool_],
        judge: Callable[[Place], bool | None],
    ) -> bool:
        """`inspect` after all tensors of a selection were measured together.

        Args:
            selection: the tensors.
            step: global step.
            doubtful: which of them are so near to firing, or so odd, that they have to be judged by themselves.
            judge: as for `inspect`; it is asked about these, and about those that could not be measured together.
        """
        names = selection.others + [selection.names[at] for at in np.flatnonzero(doubtful)]
        self.inspected += len(selection.names) + len(selection.others) - len(names)
        for place in self.places(sorted(names), step):
            answer = judge(place)
            self.inspected += answer is not None
            if answer:
                return True
        return False

    def watch_nearest(
        self,
        quantity: str,
        step: int,
        selection: Selection,
        values: NDArray[np.float64],
        threshold: float | None,
        fires: Side = "above",
    ) -> None:
        """`watch` for the tensor of a selection whose value is nearest to firing; NaN is left to who judges it."""
        known = np.where(np.isnan(values), np.inf if fires == "below" else -np.inf, values)
        at = int(known.argmin() if fires == "below" else known.argmax())
        if not np.isnan(values[at]):
            tensor, worker = selection.names[at], selection.batch.worker
            self.watch(quantity, step, float(values[at]), threshold, fires=fires, tensor=tensor, worker=worker)

    def steps_before(self, step: int, count: int) -> tuple[int, ...]:
        """The last `count` complete global steps of a global step's mode, itself included; fewer where there are."""
        return self._shared.steps_before(self.base_trial, step, count)

    def find(
        self, tensor: str, step: int, value: float, threshold: float | None, text: str, worker: str | None = None
    ) -> bool:
        """Keeps what was found and answers True; see `Finding` for the arguments."""
        mode, mode_step = self.base_trial.mode_modestep(step)
        self.finding = Finding(tensor, step, mode, mode_step, value, threshold, text, worker)
        return True

    def find_at(self, place: Place, value: float, threshold: float | None, text: str) -> bool:
        """`find` for what one worker saved."""
        return self.find(place.name, place.step, value, threshold, text, place.worker)
