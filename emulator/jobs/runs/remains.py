"""Remains of ended jobs: folders, logs and containers, found and pruned."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL, remove_container
from emulator.jobs.runs.containers.logs import PROCESSING_GROUP, TRAINING_GROUP
from emulator.jobs.staging.opt_ml import WORK_FOLDERS, remove_work_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from container_runtime.runtime import ContainerRuntime
    from emulator.moto_services.cloudwatch.logs import LogGroups

logger = logging.getLogger(__name__)

_POLL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Remains:
    """One thing that a job left.

    Attributes:
        kind: ``folder``, ``log`` or ``container``.
        name: the folder's path, the stream's name or the container's id.
        job: the name of the job, or of the rule's evaluation, that it is of.
        size: its bytes; 0 for a container, whose files are the engine's.
        last_ms: when it was last written; 0 for a container, which should have gone with its job.
        remove: removes it; a failure is said and left.
    """

    kind: str
    name: str
    job: str
    size: int
    last_ms: int
    remove: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Retention:
    """What of the remains is kept; where nothing is said, nothing is.

    Attributes:
        seconds: what was written since; None for no bound.
        size: so many bytes of all, those written last; None for no bound.
    """

    seconds: float | None = None
    size: int | None = None

    def choose(self, found: Iterable[Remains], now_ms: int) -> list[Remains]:
        """Choose what goes, the oldest first."""
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
    """Find the folders of jobs, those that run included."""
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
                    continue  # its job runs
                size, last = size + found.st_blocks * 512, max(last, found.st_mtime)
        # The job's id, after the last dash, has none.
        job = folder.name.rpartition("-")[0]
        yield Remains("folder", str(folder), job, size, int(last * 1000), partial(remove_work_folder, folder))


def find_containers(store_id: str, runtime: ContainerRuntime) -> Iterator[Remains]:
    """Find the containers of the jobs of a store, those that run included.

    Raises:
        ContainerRuntimeError: the engine does not answer.
    """
    for container in runtime.find({STORE_LABEL: store_id}):
        job = container.labels[JOB_LABEL].rpartition("/")[2]
        yield Remains("container", container.id, job, 0, 0, partial(remove_container, runtime, container.id))


def find_logs(log_groups: LogGroups) -> Iterator[Remains]:
    """Find the log streams of the jobs of a region, those that run included."""
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
    """Remove what ended jobs left; return what was, or would be, removed.

    Args:
        find: finds what jobs left.
        list_active: the names of jobs, and of evaluations, that may still write; asked after ``find``, so that nothing
            is found of a job that it did not name. An ARN has a name in small letters: case does not count.
        retention: what is kept.
        dry_run: remove nothing.
    """
    found = list(find())
    active = {name.lower() for name in list_active()}
    chosen = retention.choose((each for each in found if each.job.lower() not in active), time.time_ns() // 1_000_000)
    if not dry_run:
        for each in chosen:
            each.remove()
    return chosen


class Pruner:
    """A thread that prunes again and again."""

    def __init__(self, prune: Callable[[], Collection[object]]) -> None:
        self._prune = prune
        self._closing = Event()
        self._thread = Thread(target=self._run, name="pruner")
        self._thread.start()

    def close(self) -> None:
        """Return when it has ended."""
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                if gone := self._prune():
                    logger.info("%d folders, logs and containers of ended jobs are removed (--retention)", len(gone))
            except Exception:  # the next look may find the engine, or the disk, well again
                logger.exception("What ended jobs left could not be removed")
            self._closing.wait(_POLL_SECONDS)
