"""What a tensor asks of the run that it belongs to."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from smdebug.reading.run_reader import RunReader
from smdebug.reading.step_index import Layouts, SavedTensor, StepIndex


class RunIndexView(Protocol):
    """What was saved at each step, as `smdebug.trials.run_index.RunIndex` knows it."""

    @property
    def layouts(self) -> Layouts:
        """Which tensors there are."""
        ...

    def at(self, step: int) -> Mapping[str, StepIndex]:
        """Return what each worker saved at a global step."""
        ...

    def saved(self, step: int, tname: str) -> dict[str, SavedTensor]:
        """Return what each worker saved of a tensor at a global step."""
        ...

    def find_steps(self, tname: str, steps: Iterable[int]) -> list[int]:
        """Those of some global steps at which some worker saved something of a tensor."""
        ...

    def list_in_order(self) -> list[str]:
        """Return all tensors in the order of the model, as far as index files were read."""
        ...

    def has(self, step: int, tname: str) -> bool:
        """Whether some worker saved something of a tensor at a global step."""
        ...

    def find_damage(self, step: int) -> str | None:
        """Why something that was saved at a step is lost."""
        ...

    def read_all(self) -> None:
        """Read whatever was not read yet."""
        ...


class TensorSource(Protocol):
    """What a tensor asks of the run that it belongs to."""

    @property
    def run_index(self) -> RunIndexView:
        """What was saved at each step."""
        ...

    @property
    def reader(self) -> RunReader:
        """What reads its records."""
        ...

    def maybe_refresh(self) -> None:
        """Look for new steps, unless refreshing is off or there can be none."""
        ...
