"""Required tensors of a rule at a step, declared so that they load together."""

from collections.abc import Iterable, Sequence

from smdebug.exceptions import TensorUnavailable, TensorUnavailableForStep
from smdebug.reading.tensor import Tensor
from smdebug.trials.trial import Trial


class RequiredTensorsForTrial:
    """The tensors required of one trial: names, each with the global steps at which it is needed."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._steps: dict[str, list[int]] = {}

    def add(self, name: str, steps: Sequence[int], should_match_regex: bool = False) -> None:
        """Require a tensor, or all whose names match a regex, at these global steps; steps of all calls add up.

        Raises:
            TensorUnavailable: no tensor of this name has been saved so far.
        """
        if should_match_regex:
            names = self.trial.tensor_names(regex=name)
        elif self.trial.has_tensor(name):
            names = [name]
        else:
            raise TensorUnavailable(name)
        for found in names:
            self._steps.setdefault(found, []).extend(steps)

    def get_names(self) -> list[str]:
        """Return the names of the required tensors."""
        return list(self._steps)

    def get_tensor_steps(self, name: str) -> list[int]:
        """Return the global steps at which a tensor is required; empty if it is not required."""
        return self._steps.get(name, [])

    def get(self) -> list[Tensor]:
        """Return the required tensors."""
        return [self.trial.tensor(name) for name in self._steps]

    def clear(self) -> None:
        """Remove all required tensors."""
        self._steps.clear()

    def fetch(self) -> None:
        """Wait for all steps, then read the data not loaded yet; on S3 with few requests for all tensors together.

        Raises:
            TensorUnavailableForStep: a tensor was not saved at a step where it is required.
            StepUnavailable, NoMoreData: a step will not come.
        """
        self.trial.wait_for_steps(sorted({step for steps in self._steps.values() for step in steps}))
        locations = []
        for name, steps in self._steps.items():
            tensor = self.trial.tensor(name)
            for step in steps:
                saved = tensor.saved(step)
                if not saved:
                    raise TensorUnavailableForStep(name, step)
                locations += [entry.location for entry in saved.values() if entry.location is not None]
        self.trial.reader.prefetch(locations)


class RequiredTensors:
    """The tensors that a rule requires of its trials; without a trial, the methods use the base trial."""

    def __init__(self, base_trial: Trial, other_trials: Iterable[Trial] | None = None) -> None:
        self.base_trial = base_trial
        self._of_trials = {trial: RequiredTensorsForTrial(trial) for trial in (base_trial, *(other_trials or ()))}

    def add(
        self, name: str, steps: Sequence[int], trial: Trial | None = None, should_match_regex: bool = False
    ) -> None:
        """Require a tensor, or all whose names match a regex, at these global steps.

        Raises:
            TensorUnavailable: no tensor of this name has been saved so far.
        """
        self._of(trial).add(name, steps, should_match_regex)

    def get_names(self, trial: Trial | None = None) -> list[str]:
        """Return the names of the tensors required of a trial."""
        return self._of(trial).get_names()

    def get_tensor_steps(self, name: str, trial: Trial | None = None) -> list[int]:
        """Return the global steps at which a tensor is required."""
        return self._of(trial).get_tensor_steps(name)

    def get(self, trial: Trial | None = None) -> list[Tensor]:
        """Return the tensors required of a trial."""
        return self._of(trial).get()

    def clear(self) -> None:
        """Remove all required tensors of all trials."""
        for required in self._of_trials.values():
            required.clear()

    def fetch(self) -> None:
        """Wait for the required tensors and read them; raises the errors of `RequiredTensorsForTrial.fetch`."""
        for required in self._of_trials.values():
            required.fetch()

    def _of(self, trial: Trial | None) -> RequiredTensorsForTrial:
        chosen = self.base_trial if trial is None else trial
        return self._of_trials.setdefault(chosen, RequiredTensorsForTrial(chosen))
