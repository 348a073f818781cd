"""The collections of a run: waiting for their files, and taking in what hooks add to them later."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from smdebug.core.collection_manager import CollectionManager
from smdebug.core.locations import parse_worker_of_collections_file
from smdebug.core.logger import get_logger
from smdebug.exceptions import MissingCollectionFiles

if TYPE_CHECKING:
    from smdebug.core.collection import Collection
    from smdebug.core.run_files import RunFiles

_SAY_WAITING_EVERY_S = 30.0


class RunCollections:
    """Collections as the first worker, by name, described them; waits until every worker has written its file.

    Args:
        files: the files of the run.
        path: where they are, for messages.
        poll_interval_s: seconds between two looks.

    Raises:
        MissingCollectionFiles: the job has ended, and some worker's file is not there.
        SMDebugValueError, KeyError: the first worker's file is no collections file.

    Attributes:
        workers: sorted names of the workers that write the run.
        num_workers: how many workers write each step.
        may_have_grown: set it when something shows that hooks may have written their collections again.
    """

    def __init__(self, files: RunFiles, path: str, poll_interval_s: float) -> None:
        self._files = files
        self.may_have_grown = False
        names = self._wait_for_files(path, poll_interval_s)
        self.workers = sorted(parse_worker_of_collections_file(name) for name in names)
        self.num_workers = self._manager.get_num_workers()

    def get_all(self) -> dict[str, Collection]:
        """All collections by name."""
        self._update()
        return self._manager.get_collections()

    def get(self, name: str) -> Collection:
        """A collection by name; an unknown one is created empty."""
        self._update()
        return self._manager.get(name)

    def _wait_for_files(self, path: str, poll_interval_s: float) -> list[str]:
        next_word = time.monotonic() + _SAY_WAITING_EVERY_S
        while True:
            # Asked before listing: a job that has ended writes no more of them.
            ended = self._files.has_ended()
            names = self._files.list_collections_files()
            if names:
                self._manager = self._load(names[0])
                if len(names) >= self._manager.get_num_workers():
                    return names
            if ended:
                raise MissingCollectionFiles(path)
            if time.monotonic() >= next_word:
                next_word += _SAY_WAITING_EVERY_S
                get_logger().warning("Waiting for the collections files of %s: %d so far.", path, len(names))
            time.sleep(poll_interval_s)

    def _update(self) -> None:
        if not self.may_have_grown:
            return
        self.may_have_grown = False
        for name, collection in self._load(self._files.list_collections_files()[0]).get_collections().items():
            if name in self._manager.get_collections():
                self._manager.get(name).add_tensor_name(collection.tensor_names)
            else:
                self._manager.add(collection)

    def _load(self, name: str) -> CollectionManager:
        (content,) = self._files.read([name])
        return CollectionManager.load_from_string(content.decode())
