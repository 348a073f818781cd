"""What a tensor asks of the trial that it belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from smdebug.format.tensor_location import TensorLocation
    from smdebug.mode_keys import ModeKeys
    from smdebug.reading.step_index import Layouts, SavedTensor, StepIndex


class RunIndexView(Protocol):
    """What was saved at each step, as `smdebug.trials.run_index.RunIndex` knows it."""

    @property
    def layouts(self) -> Layouts:
        """Which tensors there are."""
        ...

    def at(self, step: int) -> Mapping[str, StepIndex]:
        """What each worker saved at a global step."""
        ...

    def saved(self, step: int, tname: str) -> dict[str, SavedTensor]:
        """What each worker saved of a tensor at a global step."""
        ...

    def find_steps(self, tname: str, steps: Iterable[int]) -> list[int]:
        """Those of some global steps at which some worker saved something of a tensor."""
        ...

    def has(self, step: int, tname: str) -> bool:
        """Whether some worker saved something of a tensor at a global step."""
        ...

    def find_damage(self, step: int) -> str | None:
        """Why something that was saved at a step is lost."""
        ...

    def read_all(self) -> None:
        """Reads whatever was not read yet."""
        ...


class TensorSource(Protocol):
    """What a tensor asks of the trial that it belongs to."""

    @property
    def run_index(self) -> RunIndexView:
        """What was saved at each step."""
        ...

    @property
    def fetches_together(self) -> bool:
        """Whether fetching records together gains anything."""
        ...

    def maybe_refresh(self) -> None:
        """Looks for new steps, unless refreshing is off or there can be none."""
        ...

    def read_location(self, tname: str, location: TensorLocation, step: int, mode: ModeKeys) -> NDArray[Any]:
        """The array of one record; TensorUnavailableForStep if its file is missing or damaged."""
        ...

    def prefetch(self, locations: Iterable[TensorLocation]) -> None:
        """Announces records that will be read next."""
        ...

    def read_ahead(self, found: Sequence[tuple[int, TensorLocation]]) -> Iterator[tuple[int, TensorLocation]]:
        """Yields what it is given, and has the records that come next fetched together."""
        ...
