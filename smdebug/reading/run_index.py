"""The index of a run: what each worker saved at each step.

Opening a run of 100,000 steps lists file names only. A question about one step reads the index files of that step; a
question about the whole run (all tensor names, the steps of a mode) reads the remaining ones, several at a time on S3.
"""

import threading
from bisect import insort
from collections.abc import Iterable, Mapping

from smdebug.exceptions import IndexReaderException
from smdebug.format.arguments import check_mode
from smdebug.format.locations import get_index_path, parse_step, parse_worker, serialize_tf_device
from smdebug.format.tensor_location import TensorLocation
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.reading.index_files import IndexFinder, IndexName, parse_index
from smdebug.reading.index_templates import IndexTemplates
from smdebug.reading.run_files import RunFiles
from smdebug.reading.step_index import Layouts, SavedTensor, StepIndex
from smdebug.reading.tensor_order import order_names

# The number of index files whose contents are in memory at the same time.
_BATCH_FILES = 1024
_NOTHING: Mapping[str, StepIndex] = {}


class RunIndex:
    """The index files of a run, found by name and read on demand.

    Args:
        files: the files of the run.
        range_steps: (begin, end) in global steps, None for open; only steps in [begin, end) are found.

    Attributes:
        files: see above.
        layouts: the layouts of all index files that were read.
        entered: the global step of each index file that was read, in the order of reading.
        damage: why the data of a worker at a step is lost, by (step, worker).
        lock: held while new files are searched or read, so that several threads can use one trial.
    """

    def __init__(self, files: RunFiles, range_steps: tuple[int | None, int | None] | None = None) -> None:
        self.files = files
        self._finder = IndexFinder(files, range_steps)
        self.lock = threading.RLock()
        self._ended = False
        self._unread: dict[int, list[IndexName]] = {}
        self._steps: dict[int, dict[str, StepIndex]] = {}
        self.layouts = Layouts()
        self._templates = IndexTemplates()
        self.entered: list[int] = []
        self.damage: dict[tuple[int, str], str] = {}
        self._newest_steps: dict[str, int] = {}
        self._modes_of_steps: dict[int, tuple[ModeKeys, int]] = {}
        self._mode_steps: dict[ModeKeys, list[int]] = {}
        self._global_steps: dict[tuple[ModeKeys, int], int] = {}

    def find_new(self, oldest_incomplete_step: int | None) -> tuple[list[IndexName], bool]:
        """Return index files that are new or have grown since the last call, and whether the job has ended.

        Args:
            oldest_incomplete_step: the lowest step for which the file of some worker is still missing.
        """
        found, self._ended = self._finder.find_new(oldest_incomplete_step)
        for each in found:
            _, step, worker = each
            unread = self._unread.setdefault(step, [])
            if each not in unread:
                unread.append(each)
            if self._newest_steps.get(worker, -1) < step:
                self._newest_steps[worker] = step
        return found, self._ended

    def at(self, step: int) -> Mapping[str, StepIndex]:
        """Return what each worker saved at a global step; workers with a damaged index file are left out."""
        if self._unread and step in self._unread:
            self.read([step])
        return self._steps.get(step, _NOTHING)

    def saved(self, step: int, tname: str) -> dict[str, SavedTensor]:
        """Return what each worker saved of a tensor at a global step."""
        found = {}
        for worker, index in self.at(step).items():
            entry = index.find(tname)
            if entry is not None:
                found[worker] = entry
        return found

    def has(self, step: int, tname: str) -> bool:
        """Return whether any worker saved something of a tensor at a global step."""
        return bool(self.find_steps(tname, (step,)))

    def find_steps(self, tname: str, steps: Iterable[int]) -> list[int]:
        """Return those of the given global steps at which any worker saved something of a tensor."""
        found = []
        for step in steps:
            # No function calls: this runs for every step of a run and every tensor.
            by_worker = self.at(step) if step in self._unread else self._steps.get(step, _NOTHING)
            for index in by_worker.values():
                if tname in index.layout.names:
                    found.append(step)
                    break
        return found

    def names(self, step: int) -> dict[str, None]:
        """Return the names of the tensors that were saved at a global step."""
        return {name: None for index in self.at(step).values() for name in index.layout.names}

    def list_in_order(self) -> list[str]:
        """Return the names of all tensors in the order of the model, as far as index files have been read."""
        with self.lock:
            steps = [self._steps[step] for step in sorted(self._steps)]
            layouts = dict.fromkeys(by_worker[worker].layout for by_worker in steps for worker in sorted(by_worker))
        return order_names(name for layout in layouts for name in layout.names)

    def find_damage(self, step: int) -> str | None:
        """Return why data of a step is lost; None if nothing is lost."""
        self.at(step)
        return next((reason for (lost, _), reason in self.damage.items() if lost == step), None)

    def knows(self, tname: str) -> bool:
        """Return whether any step has this tensor. Index files are read only until one has it."""
        batch = 1
        while tname not in self.layouts.names and self._unread:
            self.read(list(self._unread)[:batch])
            batch = min(2 * batch, _BATCH_FILES)
        return tname in self.layouts.names

    def modes(self) -> list[ModeKeys]:
        """Return the modes in which steps were saved, GLOBAL excluded."""
        self.read_all()
        return list(self._mode_steps)

    def mode_steps(self, mode: ModeKeys) -> list[int]:
        """Return the sorted steps of a mode other than GLOBAL, in the numbers of that mode; not to be changed."""
        check_mode(mode)
        self.read_all()
        return self._mode_steps.get(mode, [])

    def mode_step(self, step: int) -> tuple[ModeKeys, int] | tuple[None, None]:
        """Return the mode of a global step and its number in that mode; (None, None) for an unknown step."""
        self.at(step)
        return self._modes_of_steps.get(step, (None, None))

    def list_mode_steps(self) -> dict[int, tuple[ModeKeys, int]]:
        """Return the mode of every known global step and its number in that mode."""
        self.read_all()
        return dict(sorted(self._modes_of_steps.items()))

    def global_step(self, mode: ModeKeys, mode_step: int) -> int | None:
        """Return the global step of a step of a mode, None for an unknown one. A GLOBAL step is returned unchanged."""
        if mode is ModeKeys.GLOBAL:
            return mode_step
        check_mode(mode)
        self.read_all()
        return self._global_steps.get((mode, mode_step))

    def may_still_come(self, event_file_name: str) -> bool:
        """Return whether a missing event file may still appear: the newest one of its worker, while the job runs."""
        if self._ended or self.files.has_ended():
            return False
        try:
            step, worker = parse_step(event_file_name), parse_worker(event_file_name)
        except ValueError:
            return False
        return self._newest_steps.get(worker, -1) <= step

    def read_all(self) -> None:
        """Read all index files that were found and not read yet."""
        if self._unread:
            self.read(list(self._unread))

    def read(self, steps: Iterable[int]) -> None:
        """Read the index files of the given steps. A damaged file is logged; the others stay readable."""
        with self.lock:
            # Another thread may have read some of them in the meantime.
            unread = [step for step in steps if step in self._unread]
            wanted = [each for step in unread for each in self._unread[step]]
            for start in range(0, len(wanted), _BATCH_FILES):
                batch = wanted[start : start + _BATCH_FILES]
                for each, content in zip(batch, self._read_files(batch), strict=True):
                    self._enter(each, content)
            # Removed last: no other thread may see a step of which only some files were read.
            for step in unread:
                self._unread.pop(step, None)

    def relocate(self, location: TensorLocation) -> TensorLocation:
        """Read an index file again, and return where it says that a record is; the given location if it is not in it.

        Args:
            location: the location of the record by what was read of the index file before.
        """
        try:
            step, worker = parse_step(location.event_file_name), parse_worker(location.event_file_name)
        except ValueError:
            return location
        found = IndexName(get_index_path(step, serialize_tf_device(worker)), step, worker)
        with self.lock:
            self._enter(found, self._read_file(found.name))
            index = self._steps.get(step, _NOTHING).get(worker)
        return location if index is None else index.find_record(location)

    def _read_files(self, batch: list[IndexName]) -> list[bytes | OSError]:
        try:
            return list(self.files.read([each.name for each in batch]))
        except OSError:
            # One file failed: reading each by itself tells which, and the others are kept.
            return [self._read_file(each.name) for each in batch]

    def _read_file(self, name: str) -> bytes | OSError:
        try:
            return self.files.read([name])[0]
        except OSError as error:
            return error

    def _enter(self, found: IndexName, content: bytes | OSError) -> None:
        _, step, worker = found
        where = self.files.locate(found.name)
        try:
            if isinstance(content, OSError):
                raise IndexReaderException(  # noqa: TRY301 -- handled like a file that cannot be parsed
                    f"Index file {where} cannot be read ({content}). The data of worker {worker} at step {step} "
                    "is lost."
                ) from content
            index = self._templates.read(content)
            if index is None:
                index = self.layouts.pack(parse_index(content, step, worker, where))
                self._templates.learn(content, index)
        except IndexReaderException as error:
            get_logger().error("%s", error)
            self.damage[step, worker] = str(error)
            return
        self.damage.pop((step, worker), None)
        self._enter_mode(step, index.mode, index.mode_step)
        self._steps.setdefault(step, {})[worker] = index
        self.entered.append(step)

    def _enter_mode(self, step: int, mode: ModeKeys, mode_step: int) -> None:
        if mode is ModeKeys.GLOBAL:
            self._modes_of_steps.setdefault(step, (mode, step))
            return
        if (mode, mode_step) not in self._global_steps:
            insort(self._mode_steps.setdefault(mode, []), mode_step)
        # If two global steps have the same number in a mode, the later one counts.
        self._global_steps[mode, mode_step] = max(step, self._global_steps.get((mode, mode_step), step))
        self._modes_of_steps[step] = (mode, mode_step)
