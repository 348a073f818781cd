"""RunWriter: creation and closing of all files that one process writes."""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from smdebug.config.collection_manager import COLLECTIONS_KEY, CollectionManager
from smdebug.config.json_config import get_job_out_dir
from smdebug.environment import is_sagemaker_job
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.format.locations import END_OF_JOB_FILE, get_collections_path, serialize_tf_device
from smdebug.job_warnings import HOOK_SAVED_NOTHING, warn_user
from smdebug.logger import get_logger
from smdebug.mode_keys import ModeKeys
from smdebug.storage.outage import ObjectStoreError
from smdebug.storage.output import delete_file, is_s3_path, path_exists, split_s3_path, write_whole_file
from smdebug.storage.s3 import get_path_text
from smdebug.writing.claim import Claim
from smdebug.writing.step_writer import HeadCache, StepWriter

_ENDED_DIR = "ended"


@dataclass(frozen=True)
class Worker:
    """One of the processes of a distributed training.

    Attributes:
        name: name of the worker in trials, e.g. `worker_0`.
        is_chief: whether this worker writes if only one worker does.
        count: number of workers.
    """

    name: str
    is_chief: bool
    count: int

    @classmethod
    def of_rank(cls, rank: int, count: int) -> "Worker":
        """Return the worker with a rank among `count` workers; rank 0 is the chief."""
        return cls(f"worker_{rank}", rank == 0, count)


def check_out_dir(out_dir: str | os.PathLike[str] | None) -> str:
    """Check and return the folder or `s3://` prefix of a new run, with `~` expanded.

    In a SageMaker job, an empty text stands for the folder that the job's hook configuration names.

    Raises:
        SMDebugRuntimeError: out_dir is missing, names no bucket, is a file, or holds a run that has ended.
        SMDebugTypeError: out_dir is neither a string nor a path object.
    """
    if out_dir == "" and is_sagemaker_job():
        out_dir = get_job_out_dir()
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
        # The storage may be available again at the first saved step, so an outage does not stop the training.
        get_logger().warning("Whether %s holds a run that has ended is not known: %s", out_dir, error)
        return False


class RunWriter:
    """Opens steps, and writes the collections file and the end-of-job file, if this process is to write them."""

    def __init__(self, out_dir: str, *, all_workers: bool, dry_run: bool) -> None:
        """Initialize with a checked out_dir; if `all_workers` is False, only the chief writes."""
        self.out_dir = out_dir
        self.all_workers = all_workers
        self._dry_run = dry_run
        self._root = out_dir.rstrip("/")
        self._heads = HeadCache()
        self._claim: Claim | None = None
        self._worker: Worker | None = None
        self._made_by = os.getpid()
        # The process that owns the steps, determined at the first step.
        self._pid: int | None = None
        self.may_write = False
        self._exported: str | None = None
        self._last: StepWriter | None = None
        # A step whose visible files must not be replaced by values that arrive after a failure.
        self._given_up: int | None = None
        self.has_written = False

    @property
    def is_own_process(self) -> bool:
        """Whether this process made the first step; before the first step, whether it created this writer."""
        return os.getpid() == (self._pid or self._made_by)

    def may_write_here(self, get_worker: Callable[[], Worker]) -> bool:
        """Return whether this process writes.

        The first call decides it. A child forked later never writes.
        """
        pid = os.getpid()
        if self._pid is None:
            self._pid = pid
        if pid != self._pid:
            return False
        if self._worker is None:
            self.start(get_worker())
        return self.may_write

    def start(self, worker: Worker) -> None:
        """Set the worker of this process at its first step, and thereby `may_write`."""
        self._worker = worker
        self.may_write = not self._dry_run and (self.all_workers or worker.is_chief)
        if self.may_write and worker.count == 1 and not is_s3_path(self._root):
            self._claim = Claim(self._root)
            self.may_write = self._claim.take()
            if not self.may_write and self._claim.is_held_here:
                warn_user(
                    HOOK_SAVED_NOTHING,
                    "Another hook of this process writes to %s: this one saves nothing. Close the other hook first, or "
                    "give this one another out_dir.",
                    self.out_dir,
                )
            elif not self.may_write:
                warn_user(
                    HOOK_SAVED_NOTHING,
                    "Another process writes to %s: process %d saves nothing. If the processes train together, "
                    "initialize the framework's distributed training before the first step, so that each is a "
                    "separate worker.",
                    self.out_dir,
                    os.getpid(),
                )
        elif self.may_write and self._waits_for_others:
            # A run that was killed and is started again in the same folder may have left it.
            delete_file(self._get_ended_path(worker.name))

    def open_step(self, step: int, mode: ModeKeys, mode_step: int) -> StepWriter:
        """Return the writer of a step; for the newest step, the same writer as before.

        Raises:
            SMDebugRuntimeError: adding to that step failed before; its files stay unchanged.
        """
        assert self._worker
        if step == self._given_up:
            raise SMDebugRuntimeError(f"Nothing more can be added to step {step}: an earlier addition failed.")
        if self._last is None or self._last.step != step:
            self.has_written = True
            self._last = StepWriter(
                self._root, serialize_tf_device(self._worker.name), step, mode, mode_step, self._heads
            )
        return self._last

    def drop_step(self) -> None:
        """Discard the values of the newest step that are not visible yet."""
        if self._last:
            last, self._last = self._last, None
            if last.is_visible:
                self._given_up = last.step
            last.abort()

    def leave_to_parent(self) -> None:
        """Forget, in a forked child, the parent's open step and its claim, which ends with the parent."""
        self._last = None
        if self._claim:
            self._claim.forget()

    @property
    def has_collections_file(self) -> bool:
        """Whether this or another process has written the collections file of this worker name."""
        assert self._worker
        return path_exists(f"{self._root}/{get_collections_path(serialize_tf_device(self._worker.name))}")

    def export_collections(self, collections: CollectionManager, unused: Iterable[str] = ()) -> None:
        """Write the worker's collections file, without the unused ones, if it differs from the last one written."""
        if not self.may_write:
            return
        assert self._worker
        collections.set_num_workers(self._worker.count if self.all_workers else 1)
        content = collections.to_json_dict()
        for name in unused:
            del content[COLLECTIONS_KEY][name]
        text = json.dumps(content)
        if text != self._exported:
            path = f"{self._root}/{get_collections_path(serialize_tf_device(self._worker.name))}"
            write_whole_file(path, [text.encode()])
            self._exported = text

    @staticmethod
    def _write_end(path: str) -> None:
        try:
            write_whole_file(path, [])
        except FileNotFoundError:
            # Of two workers that ended at once, the other one has given the file its name.
            if not path_exists(path):
                raise

    def end(self) -> None:
        """Write the end-of-job file once every writing worker has ended; in SageMaker, the service writes it.

        A run folder that was deleted is not recreated.
        """
        if self.was_deleted:
            get_logger().info("%s is gone: the end of its run is not written.", self.out_dir)
        elif not is_sagemaker_job() and self._is_last_to_end():
            self._write_end(f"{self._root}/{END_OF_JOB_FILE}")
        if self._claim:
            self._claim.release()

    @property
    def was_deleted(self) -> bool:
        """Whether the folder of the run was removed after this process wrote to it."""
        return self.has_written and not is_s3_path(self._root) and not Path(self._root).exists()

    def _is_last_to_end(self) -> bool:
        if self._worker is None or self._dry_run:
            return True
        if not self._waits_for_others:
            return self.may_write
        # Trials stop loading at the end-of-job file, so it must not exist before the slowest worker's last step.
        write_whole_file(self._get_ended_path(self._worker.name), [])
        names = [f"worker_{rank}" for rank in range(self._worker.count)]
        return all(path_exists(self._get_ended_path(name)) for name in names)

    @property
    def _waits_for_others(self) -> bool:
        """Whether the last one of several workers writes the end-of-job file."""
        return self.all_workers and self._worker is not None and self._worker.count > 1 and not is_sagemaker_job()

    def _get_ended_path(self, worker: str) -> str:
        """Return the path of the file that says that a worker has ended."""
        return f"{self._root}/{_ENDED_DIR}/{serialize_tf_device(worker)}"
