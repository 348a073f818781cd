"""RunWriter: creation and closing of all files that one process writes."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from smdebug.config.collection_manager import CollectionManager
from smdebug.environment import TRAINING_JOB_NAME_ENV_STR
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.format.locations import END_OF_JOB_FILE, get_collections_path, serialize_tf_device
from smdebug.job_warnings import HOOK_SAVED_NOTHING, warn_user
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.storage.outage import ObjectStoreError
from smdebug.storage.output import is_s3_path, path_exists, split_s3_path, write_whole_file
from smdebug.storage.s3 import get_path_text
from smdebug.writing.claim import Claim
from smdebug.writing.step_writer import HeadCache, StepWriter

_ENDED_DIR = "ended"


@dataclass(frozen=True)
class Worker:
    """One of the processes that train together.

    Attributes:
        name: as file names and trials show it.
        is_chief: whether it is the one that writes where only one does.
        count: how many workers there are.
    """

    name: str
    is_chief: bool
    count: int

    @classmethod
    def of_rank(cls, rank: int, count: int) -> "Worker":
        """Return one of `count` workers: the first is the chief."""
        return cls(f"worker_{rank}", rank == 0, count)


def check_out_dir(out_dir: str | os.PathLike[str] | None) -> str:
    """Return the folder of a new run, `~` expanded.

    Raises:
        SMDebugRuntimeError: there is none, it is no place for a run, or it holds one that has ended.
        SMDebugTypeError: it is neither text nor a path object.
    """
    if not out_dir:
        raise SMDebugRuntimeError("A hook needs out_dir: the folder or s3:// prefix that the run is written to.")
    text = get_path_text(out_dir)
    expanded = text if is_s3_path(text) else os.path.expanduser(text)  # noqa: PTH111 - keeps `//`
    if is_s3_path(expanded) and not split_s3_path(expanded)[0]:
        raise SMDebugRuntimeError(f"{expanded!r} names no bucket: give one of the form s3://bucket/prefix.")
    if not is_s3_path(expanded) and Path(expanded).exists() and not Path(expanded).is_dir():
        raise SMDebugRuntimeError(f"{expanded} is a file: out_dir names the folder that the run is written to.")
    if _has_ended_run(expanded):
        raise SMDebugRuntimeError(
            f"{expanded} holds a run that has ended ({END_OF_JOB_FILE} is there): choose another out_dir or remove it."
        )
    return expanded


def _has_ended_run(out_dir: str) -> bool:
    try:
        return path_exists(f"{out_dir.rstrip('/')}/{END_OF_JOB_FILE}")
    except ObjectStoreError as error:
        # Storage that does not answer now may do so at the first saved step; a training is not ended for it.
        get_logger().warning("Whether %s holds a run that has ended is not known: %s", out_dir, error)
        return False


class RunWriter:
    """Opens steps, writes the collections file and the end of the job, each only where this process is to write."""

    def __init__(self, out_dir: str, *, all_workers: bool, dry_run: bool) -> None:
        """Take a checked out_dir; `all_workers` False means that the chief alone writes."""
        self.out_dir = out_dir
        self.all_workers = all_workers
        self._dry_run = dry_run
        self._root = out_dir.rstrip("/")
        self._heads = HeadCache()
        self._claim: Claim | None = None
        self._worker: Worker | None = None
        self._made_by = os.getpid()
        # The process whose steps these are; settled by the first one.
        self._pid: int | None = None
        self.may_write = False
        self._exported: str | None = None
        self._last: StepWriter | None = None
        # A step whose files are there, and are not to be replaced by what comes after a failure.
        self._given_up: int | None = None
        self._has_written = False

    @property
    def is_own_process(self) -> bool:
        """Whether this is the process of the first step, or, before any, the one that made this."""
        return os.getpid() == (self._pid or self._made_by)

    def may_write_here(self, get_worker: Callable[[], Worker]) -> bool:
        """Tell whether this process writes, and settle that with the first call; a child forked later does not."""
        pid = os.getpid()
        if self._pid is None:
            self._pid = pid
        if pid != self._pid:
            return False
        if self._worker is None:
            self.start(get_worker())
        return self.may_write

    def start(self, worker: Worker) -> None:
        """Settle which worker this process is, at its first step, and with it whether `may_write`."""
        self._worker = worker
        self.may_write = not self._dry_run and (self.all_workers or worker.is_chief)
        if self.may_write and worker.count == 1 and not is_s3_path(self._root):
            self._claim = Claim(self._root)
            self.may_write = self._claim.take()
            if not self.may_write:
                warn_user(
                    HOOK_SAVED_NOTHING,
                    "Another process writes %s: process %d saves nothing. Processes that train together must say so "
                    "to their framework before the first step, so that each is a worker of its own.",
                    self.out_dir,
                    os.getpid(),
                )

    def open_step(self, step: int, mode: ModeKeys, mode_step: int) -> StepWriter:
        """Return the writer of a step; of the newest one the same again, with what it holds.

        Raises:
            SMDebugRuntimeError: adding to that step has failed before; its files stay as they were then.
        """
        assert self._worker
        if step == self._given_up:
            raise SMDebugRuntimeError(f"Step {step} takes nothing more: adding to it has failed before.")
        if self._last is None or self._last.step != step:
            self._has_written = True
            self._last = StepWriter(
                self._root, serialize_tf_device(self._worker.name), step, mode, mode_step, self._heads
            )
        return self._last

    def drop_step(self) -> None:
        """Give up what the newest step holds and has not made visible."""
        if self._last:
            last, self._last = self._last, None
            if last.is_visible:
                self._given_up = last.step
            last.abort()

    def leave_to_parent(self) -> None:
        """Forget, in a forked child, the step that the parent has open, and the claim, which ends with the parent."""
        self._last = None
        if self._claim:
            self._claim.forget()

    @property
    def has_collections_file(self) -> bool:
        """Whether a worker of this name has written its collections file, in this process or another."""
        assert self._worker
        return path_exists(f"{self._root}/{get_collections_path(serialize_tf_device(self._worker.name))}")

    def export_collections(self, collections: CollectionManager) -> None:
        """Write the worker's collections file, unless it would be what was written last."""
        if not self.may_write:
            return
        assert self._worker
        collections.set_num_workers(self._worker.count if self.all_workers else 1)
        text = json.dumps(collections.to_json_dict())
        if text != self._exported:
            path = f"{self._root}/{get_collections_path(serialize_tf_device(self._worker.name))}"
            write_whole_file(path, [text.encode()])
            self._exported = text

    def end(self) -> None:
        """Say that the job has ended, once every worker that writes has; in SageMaker the service does that.

        A run whose folder was deleted is not brought back.
        """
        if self.was_deleted:
            get_logger().info("%s is gone: the end of its run is not written.", self.out_dir)
        elif TRAINING_JOB_NAME_ENV_STR not in os.environ and self._is_last_to_end():
            write_whole_file(f"{self._root}/{END_OF_JOB_FILE}", [])
        if self._claim:
            self._claim.release()

    @property
    def was_deleted(self) -> bool:
        """Whether somebody removed the folder that this has written to."""
        return self._has_written and not is_s3_path(self._root) and not Path(self._root).exists()

    def _is_last_to_end(self) -> bool:
        if self._worker is None or self._dry_run:
            return True
        if not self.all_workers:
            return self.may_write
        if self._worker.count == 1:
            return self.may_write
        # A trial stops loading at the end-of-job file, so it may not come before the slowest worker's last step.
        own = serialize_tf_device(self._worker.name)
        write_whole_file(f"{self._root}/{_ENDED_DIR}/{own}", [])
        names = [f"worker_{rank}" for rank in range(self._worker.count)]
        return all(path_exists(f"{self._root}/{_ENDED_DIR}/{name}") for name in names)
