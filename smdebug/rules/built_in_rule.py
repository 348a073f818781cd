"""The base of the built-in rules: declared parameters, choosing tensors, and saying what was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from smdebug.exceptions import SMDebugValueError
from smdebug.rules.parameters import Parameter, boolean, convert_parameters, regex, texts
from smdebug.rules.rule import Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smdebug.core.step_index import SavedTensor
    from smdebug.trials.trial import Trial

# The parameters of every rule that lets its user choose the tensors.
TENSOR_CHOICE = (texts("collection_names"), regex("tensor_regex", None))
USE_LOSSES = boolean("use_losses_collection", default=True)


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
        inspects: what is looked at, in words, for the message when nothing of it was found.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = ()
    inspects: ClassVar[str] = "tensors"

    def __init__(self, base_trial: Trial, other_trials: Any = None, **given: Any) -> None:
        self.values = convert_parameters(type(self).__name__, self.parameters, given)
        super().__init__(base_trial, other_trials=other_trials)
        self.report["RuleParameters"] = str(self.values)
        self.inspected = 0

    def refuse(self, problem: str) -> SMDebugValueError:
        """The error for parameters that do not go together."""
        return SMDebugValueError(f"Rule {self.rule_name}: {problem}")

    def choose_names(self, step: int, collections: Iterable[str], patterns: Iterable[str] | None) -> list[str]:
        """Sorted names of the tensors at a global step that are in one of the collections or match a regex."""
        trial = self.base_trial
        names = {name for collection in collections for name in trial.tensor_names(step=step, collection=collection)}
        if patterns:
            names.update(trial.tensor_names(step=step, regex=patterns))
        return sorted(names)

    def saved(self, name: str, step: int) -> Mapping[str, SavedTensor]:
        """What each worker saved of a tensor at a global step, by worker."""
        return self.base_trial.tensor(name).saved(step)

    def find(
        self, tensor: str, step: int, value: float, threshold: float | None, text: str, worker: str | None = None
    ) -> bool:
        """Keeps what was found and answers True; see `Finding` for the arguments."""
        mode, mode_step = self.base_trial.mode_modestep(step)
        self.finding = Finding(tensor, step, mode, mode_step, value, threshold, text, worker)
        return True
