"""The reader of a run: every value that a trial, a tensor or a rule is given was read here."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from numpy.typing import NDArray

from smdebug.environment import MISSING_EVENT_FILE_RETRY_LIMIT_KEY, read_number
from smdebug.exceptions import IndexReaderException, TensorUnavailableForStep
from smdebug.format.tensor_location import TensorLocation
from smdebug.mode_keys import ModeKeys
from smdebug.reading.event_cache import KEEP_BYTES, EventCache
from smdebug.reading.records import RecordDecoder
from smdebug.reading.run_files import RunFiles
from smdebug.reading.stacks import StackKey, StackPlan, StackRows, build_stack
from smdebug.reading.step_index import StepIndex

# What is fetched together where that gains anything, in bytes and in records.
_FETCH_BYTES = 8 * 1024 * 1024
_FETCH_RECORDS = 256
# Rules ask for a few sets of tensors, and steps have a few layouts.
_MOST_PLANS = 256


class RunReader:
    """Reads single values, values of many steps, and small tensors of a step together; owned by a trial.

    Args:
        files: the files of the run.
        is_awaited: whether an event file that is missing may be on its way.
        poll_interval_s: seconds between two looks for such a file.
        limit: how many bytes are kept for whoever asks again.

    Attributes:
        cache: reads the event files, and keeps what was read of them.
        fetches_together: whether fetching records together gains anything, as it does on S3.
    """

    def __init__(
        self,
        files: RunFiles,
        is_awaited: Callable[[TensorLocation], bool],
        poll_interval_s: float,
        limit: int = KEEP_BYTES,
    ) -> None:
        self._files = files
        self._is_awaited = is_awaited
        self._poll_interval_s = poll_interval_s
        self._decoder = RecordDecoder(files.locate)
        self._plans: dict[StackKey, StackPlan | None] = {}
        self.cache = EventCache(files, limit)
        self.fetches_together = files.request_bytes > 0

    def read(self, tname: str, location: TensorLocation, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> NDArray[Any]:
        """Read the record at a location.

        Args:
            tname: tensor, for the message.
            location: the record.
            step: step in the mode's numbers, for the message.
            mode: what the step counts.

        Returns:
            A writable array of the caller's own.

        Raises:
            TensorUnavailableForStep: the event file is missing, cut or damaged; the rest of the run can be read.
        """
        try:
            # Nothing is called on the way that need not be: most records are small, and there are many.
            return self._decoder.decode(self.cache.read(location[1], location[2], location[3]), location)
        except IndexReaderException as error:
            raise TensorUnavailableForStep(tname, step, mode, detail=str(error)) from error
        except FileNotFoundError:
            return self._read_when_it_comes(tname, location, step, mode)
        except OSError as error:
            where = self._files.locate(location.event_file_name)
            detail = f"event file {where} cannot be read ({error})"
            raise TensorUnavailableForStep(tname, step, mode, detail=detail) from error

    def read_shared(
        self, tname: str, location: TensorLocation, step: int, mode: ModeKeys = ModeKeys.GLOBAL
    ) -> NDArray[Any]:
        """Return the array of a record for all who ask: kept, and not to be written to. Errors are those of `read`."""
        held = self.cache.find_array(location.event_file_name, location.start_idx)
        if held is None:
            held = self.read(tname, location, step, mode)
            held.flags.writeable = False
            self.cache.keep_array(location.event_file_name, location.start_idx, held)
        return held

    def prefetch(self, locations: Iterable[TensorLocation], *, announced: bool = True) -> None:
        """Have records read together, on S3 with few requests.

        Args:
            locations: the records; those at hand cost nothing.
            announced: whether all of them will be read next; else only as many are fetched as may be in vain.
        """
        wanted = [(each[1], each[2], each[3]) for each in locations if self.cache.find_array(each[1], each[2]) is None]
        if self.fetches_together or len(wanted) > 1:
            self.cache.prefetch(wanted, announced=announced)

    def read_ahead(self, found: Sequence[tuple[int, TensorLocation]]) -> Iterator[tuple[int, TensorLocation]]:
        """Yield what is given, and have the records that come next fetched together where that gains anything."""
        if not self.fetches_together:
            yield from found
            return
        part: list[tuple[int, TensorLocation]] = []
        size = 0
        for each in found:
            if part and (size + each[1].length > _FETCH_BYTES or len(part) == _FETCH_RECORDS):
                self.prefetch(location for _, location in part)
                yield from part
                part, size = [], 0
            part.append(each)
            size += each[1].length
        self.prefetch(location for _, location in part)
        yield from part

    def stack(
        self, names: Sequence[str], worker: str, index: StepIndex, unless: tuple[tuple[str, bool], ...] = ()
    ) -> StackRows | None:
        """Return the small tensors among some as rows of matrices; None where that cannot be, or gains nothing.

        The first step of a run gives None: how its records are built is learned from reading them one by one.

        Args:
            names: the tensors.
            worker: who saved them.
            index: what the worker saved at the step.
            unless: tensors of which one of these reductions was saved are left to be looked at by themselves.
        """
        key = index.layout, tuple(names), unless
        for stack in self.cache.find_stacks(index.event_file_name):
            if stack.plan.covers(names):
                # Somebody else's stack: it may hold none of these as rows.
                choice = stack.plan.choose_rows(key)
                return StackRows(stack, choice) if choice.rows else None
        plan = self._find_plan(key)
        checksums = index.checksums
        if plan is None or checksums is None:
            return None
        span = self.cache.read_span(index.event_file_name, plan.first, plan.last - plan.first)
        made = None if span is None else build_stack(plan, worker, span, checksums)
        if made is None:
            return None
        self.cache.keep_stack(index.event_file_name, made)
        return StackRows(made, plan.choose_rows(key))

    def _find_plan(self, key: StackKey) -> StackPlan | None:
        if key in self._plans:
            return self._plans[key]
        layout, names, unless = key
        forms = {}
        for name in names:
            if name in layout.values:
                tag, _, length, _ = layout.records[layout.values[name]]
                if (tag, length) not in self._decoder.forms:
                    return None
                forms[name] = self._decoder.forms[tag, length]
        if len(self._plans) >= _MOST_PLANS:
            self._plans.clear()
        plan = StackPlan(layout, names, unless, forms)
        self._plans[key] = plan if plan.is_worth_it() else None
        return self._plans[key]

    def _read_when_it_comes(self, tname: str, location: TensorLocation, step: int, mode: ModeKeys) -> NDArray[Any]:
        retries_left = read_number(MISSING_EVENT_FILE_RETRY_LIMIT_KEY, 100)
        while True:
            # Asked before the file: it may come, and the job end, between the two.
            is_last = retries_left <= 0 or not self._is_awaited(location)
            try:
                return self._decoder.decode(self.cache.read(location[1], location[2], location[3]), location)
            except IndexReaderException as error:
                raise TensorUnavailableForStep(tname, step, mode, detail=str(error)) from error
            except FileNotFoundError as lost:
                if is_last:
                    where = self._files.locate(location.event_file_name)
                    detail = f"event file {where} is missing"
                    raise TensorUnavailableForStep(tname, step, mode, detail=detail) from lost
            retries_left -= 1
            time.sleep(self._poll_interval_s)
