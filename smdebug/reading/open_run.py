"""What tables, plots and rules ask of the run that they look at; `smdebug.trials.Trial` answers."""

from collections.abc import Iterable
from typing import Protocol

from smdebug.config.collection import Collection
from smdebug.mode_keys import ModeKeys
from smdebug.reading.tensor import Tensor
from smdebug.reading.tensor_source import TensorSource


class OpenRun(TensorSource, Protocol):
    """What can be asked of a run by those who look at all of it; see `smdebug.trials.Trial`."""

    dynamic_refresh: bool
    name: str
    path: str

    @property
    def num_workers(self) -> int:
        """How many workers write each step."""
        ...

    @property
    def last_complete_step(self) -> int:
        """The highest global step that is complete; -1 if there is none."""
        ...

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[str] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]:
        """Sorted names of the tensors that were saved, narrowed by what is given."""
        ...

    def has_tensor(self, tname: str) -> bool:
        """Whether some step seen so far has this tensor."""
        ...

    def tensor(self, tname: str) -> Tensor:
        """Return the tensor of this name."""
        ...

    def collection(self, coll_name: str) -> Collection:
        """Return a collection by name."""
        ...

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]:
        """Sorted steps of a mode, in its own numbers."""
        ...

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global step of a mode's step."""
        ...

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Mode and mode step of a global step."""
        ...
