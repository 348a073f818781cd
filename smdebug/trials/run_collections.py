"""The collections of a run, with what hooks add to them later."""

import time

from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import MissingCollectionFiles, SMDebugValueError
from smdebug.format.locations import parse_worker_of_collections_file
from smdebug.logger import get_logger
from smdebug.reading.run_files import RunFiles

_LOG_WAITING_EVERY_S = 30.0


class RunCollections:
    """The collections as saved by the first worker by name. The constructor waits for the files of all workers.

    Args:
        files: the files of the run.
        path: the path of the run, for messages.
        poll_interval_s: seconds between two checks.

    Raises:
        MissingCollectionFiles: the job has ended and the file of some worker is missing.
        SMDebugValueError: no worker's file can be parsed.

    Attributes:
        workers: sorted names of the workers that write the run.
        num_workers: how many workers write each step.
        may_have_grown: set by the owner if hooks may have written their collections again.
    """

    def __init__(self, files: RunFiles, path: str, poll_interval_s: float) -> None:
        self._files = files
        self.may_have_grown = False
        names = self._wait_for_files(path, poll_interval_s)
        self.workers = sorted(parse_worker_of_collections_file(name) for name in names)
        self.num_workers = self._manager.get_num_workers()

    def get_manager(self) -> CollectionManager:
        """Return the collections; a manager creates one that is not known when it is asked for it."""
        self._update()
        return self._manager

    def _wait_for_files(self, path: str, poll_interval_s: float) -> list[str]:
        next_log = time.monotonic() + _LOG_WAITING_EVERY_S
        while True:
            # Checked before listing: a job that has ended writes no more files.
            ended = self._files.has_ended()
            names = self._files.list_collections_files()
            if names:
                self._manager = self._load_first(names)
                if len(names) >= self._manager.get_num_workers():
                    return names
            if ended:
                raise MissingCollectionFiles(path)
            if time.monotonic() >= next_log:
                next_log += _LOG_WAITING_EVERY_S
                get_logger().warning("Waiting for the collections files of %s: %d found so far.", path, len(names))
            time.sleep(poll_interval_s)

    def _update(self) -> None:
        if not self.may_have_grown:
            return
        self.may_have_grown = False
        try:
            read_again = self._load_first(self._files.list_collections_files())
        except SMDebugValueError as error:
            # The collections read before stay valid.
            get_logger().warning("%s", error)
            return
        for name, collection in read_again.get_collections().items():
            if name in self._manager.get_collections():
                self._manager.get(name).add_tensor_name(collection.tensor_names)
            else:
                self._manager.add(collection)

    def _load_first(self, names: list[str]) -> CollectionManager:
        """Return the collections of the first readable file; if there is none, raise the error of the first file."""
        first_error: SMDebugValueError | None = None
        for name in names:
            try:
                return load_collections(self._files, name)
            except SMDebugValueError as error:
                first_error = first_error or error
        raise first_error or SMDebugValueError("The collections files are gone: the run was deleted.")


def load_collections(files: RunFiles, name: str) -> CollectionManager:
    """Read one collections file.

    Raises:
        SMDebugValueError: the file is missing, truncated, or not a collections file.
    """
    try:
        (content,) = files.read([name])
        return _check_workers(CollectionManager.load_from_string(content.decode()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise SMDebugValueError(
            f"Collections file {files.locate(name)} cannot be read ({type(error).__name__}: {error}). A copy of "
            "another worker's file can replace it."
        ) from error


def _check_workers(manager: CollectionManager) -> CollectionManager:
    if manager.get_num_workers() < 1:
        raise ValueError("num_workers is below 1")
    return manager


def check_collections(files: RunFiles) -> None:
    """Check that a run can be opened without waiting for the collections files of its workers.

    Raises:
        SMDebugValueError: it cannot, or the first file is not a collections file.
    """
    names = files.list_collections_files()
    workers = load_collections(files, names[0]).get_num_workers()
    if len(names) < workers and not files.has_ended():
        raise SMDebugValueError(
            f"{len(names)} of {workers} workers have written their collections so far; try again later."
        )
