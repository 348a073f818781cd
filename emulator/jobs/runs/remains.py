"""Remains of ended jobs: folders, logs and containers, found and pruned."""

import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

from container_runtime.runtime import ContainerRuntime
from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL, remove_container
from emulator.jobs.runs.containers.logs import PROCESSING_GROUP, TRAINING_GROUP
from emulator.jobs.staging.opt_ml import remove_work_folder
from emulator.moto_services.cloudwatch.logs import LogGroups
from emulator.state.folder import WORK_FOLDERS

logger = logging.getLogger(__name__)

_POLL_SECONDS = 60.0


class Remains(NamedTuple):
    """One folder, log stream or container of a job.

    Attributes:
        kind: ``folder``, ``log`` or ``container``.
        name: Path of the folder, name of the stream or id of the container.
        job: Name of the job or rule evaluation.
        size: Size in bytes; 0 for a container, whose files belong to the engine.
        last_ms: Time of the last write, in epoch milliseconds; 0 for a container, which should not outlive its job.
        remove: Removes it; a failure is only logged.
    """

    kind: str
    name: str
    job: str
    size: int
    last_ms: int
    remove: Callable[[], None]


class Retention(NamedTuple):
    """Limits on the remains that are kept. Without any limit, nothing is kept.

    Attributes:
        seconds: Maximum age since the last write; None for no limit.
        size: Maximum total size in bytes, the newest being kept; None for no limit.
    """

    seconds: float | None = None
    size: int | None = None

    def choose(self, found: Iterable[Remains], now_ms: int) -> list[Remains]:
        """Choose the remains to remove, oldest first."""
        ordered = sorted(found, key=lambda each: each.last_ms)
        total = sum(each.size for each in ordered)
        chosen = []
        for each in ordered:
            too_old = self.seconds is not None and now_ms - each.last_ms > self.seconds * 1000
            too_much = self.size is not None and total > self.size
            if too_old or too_much or (self.seconds is None and self.size is None):
                chosen.append(each)
                total -= each.size
        return chosen


def find_folders(state_dir: Path) -> Iterator[Remains]:
    """Find the folders of jobs, including running ones."""
    try:
        folders = [each for each in (state_dir / WORK_FOLDERS).iterdir() if each.is_dir() and not each.is_symlink()]
    except FileNotFoundError:
        return
    for folder in folders:
        size, last = 0, 0.0
        for path, _, names in os.walk(folder):
            for file in (path, *(os.path.join(path, name) for name in names)):  # noqa: PTH118 - os.walk's are texts
                try:
                    found = os.lstat(file)
                except FileNotFoundError:
                    continue  # a running job removed it
                size, last = size + found.st_blocks * 512, max(last, found.st_mtime)
        # The job's id follows the last dash and contains none.
        job = folder.name.rpartition("-")[0]
        yield Remains("folder", str(folder), job, size, int(last * 1000), partial(remove_work_folder, folder))


def find_containers(store_id: str, runtime: ContainerRuntime) -> Iterator[Remains]:
    """Find the containers of a store's jobs, including running ones.

    Raises:
        ContainerRuntimeError: The engine does not answer.
    """
    for container in runtime.find({STORE_LABEL: store_id}):
        job = container.labels[JOB_LABEL].rpartition("/")[2]
        yield Remains("container", container.id, job, 0, 0, partial(remove_container, runtime, container.id))


def find_logs(log_groups: LogGroups) -> Iterator[Remains]:
    """Find the log streams of a region's jobs, including running ones."""
    for group in (TRAINING_GROUP, PROCESSING_GROUP):
        for name, size, last_ms in log_groups.list_sizes(group):
            job = name.partition("/")[0]
            yield Remains("log", name, job, size, last_ms, partial(log_groups.delete, group, name))


def prune(
    find: Callable[[], Iterable[Remains]],
    list_active: Callable[[], Collection[str]],
    retention: Retention,
    *,
    dry_run: bool,
) -> list[Remains]:
    """Remove the remains of ended jobs; return those that were, or would be, removed.

    Args:
        find: Finds the remains of jobs.
        list_active: Lists the names of jobs and rule evaluations that may still write. It is called after ``find``, so
            that it includes every active job whose remains were found. Case is ignored, because ARNs are in lower case.
        retention: Limits on what is kept.
        dry_run: Whether to remove nothing.
    """
    found = list(find())
    active = {name.lower() for name in list_active()}
    chosen = retention.choose((each for each in found if each.job.lower() not in active), time.time_ns() // 1_000_000)
    if not dry_run:
        for each in chosen:
            each.remove()
    return chosen


class Pruner:
    """Thread that prunes repeatedly."""

    def __init__(self, prune: Callable[[], Collection[object]]) -> None:
        self._prune = prune
        self._closing = Event()
        self._thread = Thread(target=self._run, name="pruner")
        self._thread.start()

    def close(self) -> None:
        """End the thread, and wait for its end."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                if gone := self._prune():
                    logger.info("%d folders, logs and containers of ended jobs are removed (--retention)", len(gone))
            except Exception:  # the engine or the disk may have recovered by the next time
                logger.exception("What ended jobs left could not be removed")
            self._closing.wait(_POLL_SECONDS)
