"""The interface of a run for tables, plots and rules."""

from collections.abc import Iterable
from typing import Any, Protocol

from smdebug.config.collection import Collection
from smdebug.mode_keys import ModeKeys
from smdebug.reading.record_reader import RecordReader
from smdebug.reading.run_index import RunIndex
from smdebug.reading.tensor import Tensor


class OpenRun(Protocol):
    """A run that can be read. `Trial` implements it; the methods are documented at `smdebug.trials.Trial`."""

    dynamic_refresh: bool
    name: str
    path: str
    run_index: RunIndex
    reader: RecordReader

    @property
    def num_workers(self) -> int: ...

    @property
    def last_complete_step(self) -> int: ...

    def tensor_names(
        self,
        show_prefixed_tensors: bool = False,
        *,
        step: int | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        regex: str | Iterable[Any] | None = None,
        collection: str | Collection | None = None,
    ) -> list[str]: ...

    def has_tensor(self, tname: str) -> bool: ...

    def tensor(self, tname: str) -> Tensor: ...

    def collection(self, coll_name: str) -> Collection: ...

    def steps(self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False) -> list[int]: ...

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None: ...

    def mode_modestep(self, global_step: int) -> tuple[ModeKeys, int] | tuple[None, None]: ...
