"""The index files of a run: known by name at once, read when a question needs what stands in them.

A run of 100,000 steps is opened by listing names. A question about one step reads that step's files; a question about
the whole run (all tensor names, the steps of a mode) reads what is left, several files at a time on S3.
"""

import threading
from collections.abc import Iterable, Mapping

from smdebug.exceptions import IndexReaderException
from smdebug.logger import get_logger
from smdebug.reading.index_forms import IndexForms
from smdebug.reading.index_reader import IndexName, parse_index
from smdebug.reading.run_files import RunFiles
from smdebug.reading.step_index import Layouts, SavedTensor, StepIndex
from smdebug.reading.step_table import StepTable
from smdebug.reading.tensor_order import order_names

# Contents of so many index files are held at a time.
_READ_TOGETHER = 1024
_NOTHING: Mapping[str, StepIndex] = {}


class RunIndex:
    """What each worker saved at each step.

    Args:
        files: the files of the run.
        table: is told the mode of each step as it is read, and asks for what it needs.

    Attributes:
        layouts: which tensors there are, as far as index files were read.
        damage: why what a worker saved at a step is lost, by (step, worker).
        newest_steps: the highest step of which each worker has written something.
        lock: held by whoever looks for new files or reads them, so that a trial may be asked from several threads.
    """

    def __init__(self, files: RunFiles, table: StepTable) -> None:
        self._files = files
        self._table = table
        self.lock = threading.RLock()
        self._unread: dict[int, list[IndexName]] = {}
        self._steps: dict[int, dict[str, StepIndex]] = {}
        self.layouts = Layouts()
        self._forms = IndexForms()
        self.damage: dict[tuple[int, str], str] = {}
        self.newest_steps: dict[str, int] = {}
        table.read_places = self._read_for_table

    def add(self, found: Iterable[IndexName]) -> None:
        """Enters index files that have become visible, or were written again: those are read again."""
        for each in found:
            _, step, worker = each
            self._table.add(step, worker)
            unread = self._unread.setdefault(step, [])
            if each not in unread:
                unread.append(each)
            if self.newest_steps.get(worker, -1) < step:
                self.newest_steps[worker] = step

    def at(self, step: int) -> Mapping[str, StepIndex]:
        """Return what each worker saved at a global step; without those whose index file is damaged."""
        if self._unread and step in self._unread:
            self.read([step])
        return self._steps.get(step, _NOTHING)

    def saved(self, step: int, tname: str) -> dict[str, SavedTensor]:
        """Return what each worker saved of a tensor at a global step; empty if nothing was."""
        found = {}
        for worker, index in self.at(step).items():
            entry = index.find(tname)
            if entry is not None:
                found[worker] = entry
        return found

    def has(self, step: int, tname: str) -> bool:
        """Whether some worker saved something of a tensor at a global step."""
        return bool(self.find_steps(tname, (step,)))

    def find_steps(self, tname: str, steps: Iterable[int]) -> list[int]:
        """Those of some global steps at which some worker saved something of a tensor, in the order given."""
        found = []
        for step in steps:
            # Asked of every step of a run for every tensor, so nothing is called on the way.
            by_worker = self.at(step) if step in self._unread else self._steps.get(step, _NOTHING)
            for index in by_worker.values():
                if tname in index.layout.names:
                    found.append(step)
                    break
        return found

    def names(self, step: int) -> dict[str, None]:
        """Return the tensors of which something was saved at a global step."""
        return {name: None for index in self.at(step).values() for name in index.layout.names}

    def list_in_order(self) -> list[str]:
        """Return all tensors in the order of the model, as far as index files were read."""
        with self.lock:
            steps = [self._steps[step] for step in sorted(self._steps)]
            layouts = dict.fromkeys(by_worker[worker].layout for by_worker in steps for worker in sorted(by_worker))
        return order_names(name for layout in layouts for name in layout.names)

    def find_damage(self, step: int) -> str | None:
        """Why something that was saved at a step is lost; None if nothing is."""
        self.at(step)
        return next((reason for (lost, _), reason in self.damage.items() if lost == step), None)

    def knows(self, tname: str) -> bool:
        """Whether some step has this tensor; reads no more than it takes to find one."""
        together = 1
        while tname not in self.layouts.names and self._unread:
            self.read(list(self._unread)[:together])
            together = min(2 * together, _READ_TOGETHER)
        return tname in self.layouts.names

    def read_all(self) -> None:
        """Read whatever was not read yet."""
        if self._unread:
            self.read(list(self._unread))

    def read(self, steps: Iterable[int]) -> None:
        """Read the index files of these steps. A damaged one is logged, and the rest of the run stays readable."""
        with self.lock:
            # Another thread may have read some of them in the meantime.
            unread = [step for step in steps if step in self._unread]
            wanted = [each for step in unread for each in self._unread[step]]
            for start in range(0, len(wanted), _READ_TOGETHER):
                part = wanted[start : start + _READ_TOGETHER]
                for each, content in zip(part, self._read_files(part), strict=True):
                    self._enter(each, content)
            # Last, so that no thread takes a step for read of which only some workers' files are.
            for step in unread:
                self._unread.pop(step, None)

    def _read_for_table(self, step: int | None) -> None:
        if step is None:
            self.read_all()
        else:
            self.at(step)

    def _read_files(self, part: list[IndexName]) -> list[bytes | OSError]:
        try:
            return list(self._files.read([each.name for each in part]))
        except OSError:
            # One of them: what it is about is found out, and the others are read.
            return [self._read_file(each.name) for each in part]

    def _read_file(self, name: str) -> bytes | OSError:
        try:
            return self._files.read([name])[0]
        except OSError as error:
            return error

    def _enter(self, found: IndexName, content: bytes | OSError) -> None:
        _, step, worker = found
        where = self._files.locate(found.name)
        try:
            if isinstance(content, OSError):
                raise IndexReaderException(  # noqa: TRY301 -- the same way as for one that can be opened and not parsed
                    f"Index file {where} cannot be read ({content}). What worker {worker} saved at step {step} is lost."
                ) from content
            index = self._forms.read(content)
            if index is None:
                index = self.layouts.pack(parse_index(content, step, worker, where))
                self._forms.learn(content, index)
        except IndexReaderException as error:
            get_logger().error("%s", error)
            self.damage[step, worker] = str(error)
            return
        self.damage.pop((step, worker), None)
        self._table.enter_place(step, index.mode, index.mode_step)
        self._steps.setdefault(step, {})[worker] = index
