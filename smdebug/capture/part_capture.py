"""Inputs and outputs of a model's parts: selection at a step, and names."""

from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from smdebug.capture.saving_plan import StepPlan

INPUT_SUFFIX = "_input_"
OUTPUT_SUFFIX = "_output_"

Part = TypeVar("Part")


@dataclass(frozen=True)
class WantedPart(Generic[Part]):
    """A part of a model whose inputs, outputs or both may be saved at a step."""

    part: Part
    name: str
    inputs: bool
    outputs: bool


class PartCapture(Generic[Part]):
    """Saves the input and output tensors of registered parts; numbering restarts at each step."""

    def __init__(self, save: Callable[[str, Any], None], report: Callable[[str, Exception], None]) -> None:
        """Initialize with a callback that saves a tensor by name, and one that reports a failure."""
        self._save = save
        self._report = report
        self._names: MutableMapping[Part, str] = {}
        # Weak: a script that changes collections in its loop gets a new plan at each step.
        self._wanted: WeakKeyDictionary[StepPlan, list[WantedPart[Part]]] = WeakKeyDictionary()
        self._numbers: dict[str, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what plans have computed: it has weak references, and models are pickled with their hooks."""
        return {**vars(self), "_wanted": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._wanted = WeakKeyDictionary()

    def __contains__(self, part: Part) -> bool:
        return part in self._names

    def is_tensor(self, value: object) -> bool:
        """Return whether a value is a tensor to save."""
        raise NotImplementedError

    def iterate_tensors(self, values: object) -> Iterator[Any]:
        """Yield the tensors in a value, including those in lists and tuples, which are numbered separately."""
        if self.is_tensor(values):
            yield values
        elif isinstance(values, (list, tuple)):
            for value in values:
                yield from self.iterate_tensors(value)

    def add(self, part: Part, name: str) -> None:
        """Register a part under a name; a part keeps its first name."""
        self._names.setdefault(part, name)
        self._wanted.clear()

    def find_wanted(self, plan: StepPlan) -> list[WantedPart[Part]]:
        """Return the parts whose inputs or outputs may be saved at a step with this plan."""
        wanted = self._wanted.get(plan)
        if wanted is None:
            wanted = self._wanted[plan] = [
                WantedPart(part, name, inputs, outputs)
                for part, name in self._names.items()
                for inputs in [plan.wants_numbered(f"{name}{INPUT_SUFFIX}")]
                for outputs in [plan.wants_numbered(f"{name}{OUTPUT_SUFFIX}")]
                if inputs or outputs
            ]
        return wanted

    def save_numbered(self, prefix: str, values: object) -> None:
        """Save every tensor in a value under the next numbers of `prefix`."""
        for tensor in self.iterate_tensors(values):
            number = self._numbers.get(prefix, 0)
            self._numbers[prefix] = number + 1
            self._save(f"{prefix}{number}", tensor)

    def save_call(self, name: str, inputs: object, outputs: object) -> None:
        """Save the inputs and outputs of one call; a failure is reported and not raised."""
        try:
            self.save_numbered(f"{name}{INPUT_SUFFIX}", inputs)
            self.save_numbered(f"{name}{OUTPUT_SUFFIX}", outputs)
        except Exception as error:  # noqa: BLE001 - as in `guarded`: the training must not see it
            self._report(f"inputs and outputs of {name}", error)

    def save_wanted(self, wanted: WantedPart[Part], inputs: object, outputs: object) -> None:
        """Save the wanted inputs and outputs of one call of a part."""
        self.save_call(wanted.name, inputs if wanted.inputs else (), outputs if wanted.outputs else ())
