"""SimilarAcrossRuns: tensors equal to those of another run."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from smdebug.reading.step_index import SavedTensor
from smdebug.rules.built_in_rule import ALL_FRAMEWORKS, TENSOR_CHOICE, BuiltInRule
from smdebug.rules.measuring.row_measures import measure
from smdebug.rules.watched_quantity import Limit
from smdebug.trials.step_tensors import WorkerTensor
from smdebug.trials.trial import Trial

_LIMIT = Limit("tensor that is the same (0: none)", 1, "at or above")


def is_same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays have the same shape and equal elements; NaN equals nothing.

    >>> is_same(np.array([1, 2]), np.array([1, 2])), is_same(np.array([1, 2]), np.array([1, 3]))
    (True, False)
    """
    if one.shape != other.shape or (one.size and one.dtype.kind in "fiu" and one.item(0) != other.item(0)):
        return False
    return bool(np.array_equal(one, other))


class SimilarAcrossRuns(BuiltInRule):
    """Fires at a step where a tensor equals the tensor of the same name, step and worker in the other run.

    Two tensors are equal if they have the same shape and the same elements. If one of the runs saved only reductions,
    all reductions that both runs saved have to be equal. The step is the same step of the same mode. Steps and tensors
    that the other run does not have are skipped.

    The rule inspects the tensors of collection_names, and those whose names match tensor_regex; all tensors if neither
    is given. other_trials is required: the name of a finished training job, or the location of its tensors.

    Source: AWS's documentation of the rule SimilarAcrossRuns (other_trials, required; collection_names None,
    tensor_regex None).
    """

    parameters = TENSOR_CHOICE
    inspects = "tensors that both runs saved at the same steps"
    needs = "the other run has nothing to compare it with"
    frameworks = ALL_FRAMEWORKS
    collections: ClassVar = {"losses": {"save_interval": "50"}}
    example: ClassVar = {"other_trials": "my-finished-job", "collection_names": "losses"}
    compares_runs = True
    advice = (
        "Check that your change reaches the training: hyperparameters, data, code in the source bundle.",
        "Give each run its own seed if the runs should differ.",
        "Frozen layers and constants are the same in all runs: choose other tensors with tensor_regex.",
    )

    def _prepare(self) -> None:
        if not self.other_trials:
            raise self.refuse("other_trials is required: the name of a finished training job to compare with.")

    def invoke_at_step(self, step: int) -> bool:
        """Whether a tensor is the same in another run at this global step."""
        mode, mode_step = self.base_trial.mode_modestep(step)
        if mode is None or mode_step is None:
            return False
        for other in self.other_trials or ():
            there = other.global_step(mode, mode_step)
            if there is not None and self._compare_with(other, there, step):
                return True
        return False

    def _compare_with(self, other: Trial, there: int, step: int) -> bool:
        places = self.tensors.saved(self._find_doubtful(other, there, step), step)
        pairs = [(place, saved) for place in places if (saved := _find(other, place, there)) is not None]
        if not pairs:
            return False
        partners = {
            (place.name, place.worker): WorkerTensor(place.name, there, place.worker, saved) for place, saved in pairs
        }
        other.step_tensors.prefetch(partners.values())

        def judge(place: WorkerTensor) -> bool | None:
            same = self._compare(other, place, partners[place.name, place.worker])
            if same is None:
                return None
            return self.weigh(
                place,
                int(same),
                [_LIMIT],
                lambda _: f"it is the same at step {there} of {other.name or other.path}",
            )

        return self.inspect([place for place, _ in pairs], judge)

    def _find_doubtful(self, other: Trial, there: int, step: int) -> list[str]:
        """Return the chosen names without those whose first elements are known to differ."""
        names = self.chosen_names(step)
        here = self.tensors.stack(names, step)
        partner = other.step_tensors.stack(names, there) if here is not None else None
        if here is None or partner is None or here.names != partner.names or here.stack.worker != partner.stack.worker:
            return names
        differ = measure(here, "first") != measure(partner, "first")
        self.inspected += int(np.count_nonzero(differ))
        self.watch_nearest(_LIMIT, step, here, np.where(differ, 0.0, np.nan))
        known = {here.names[at] for at in np.flatnonzero(differ)}
        return [name for name in names if name not in known]

    def _compare(self, other: Trial, place: WorkerTensor, partner: WorkerTensor) -> bool | None:
        ours, theirs = place.saved, partner.saved
        if ours.location is not None and theirs.location is not None:
            one = self.tensors.read_record(place, ours.location)
            return is_same(one, other.step_tensors.read_record(partner, theirs.location))
        common = sorted(set(ours.reductions) & set(theirs.reductions))
        if not common:
            return None
        return all(
            self.tensors.read_reduction(place, *key) == other.step_tensors.read_reduction(partner, *key)
            for key in common
        )


def _find(other: Trial, place: WorkerTensor, step: int) -> SavedTensor | None:
    return other.tensor(place.name).saved(step).get(place.worker) if other.has_tensor(place.name) else None
