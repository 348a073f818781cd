"""S3 objects of a restored state whose files are still in the bucket.

A restoration leaves large objects there, so that the emulator answers before all of them have come. A file comes when
somebody opens it, and one after the other in the background.
"""

import json
import logging
import threading
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from emulator.state.replica.bucket import Bucket, BucketError
from emulator.state.replica.contents import OBJECTS
from emulator.state.replica.folder import CONTENTS, MISSING, is_path

logger = logging.getLogger(__name__)

_AGAIN_SECONDS = 5.0
_PARTIAL = ".fetched-{}.partial"


def write_missing(folder: Path, names: Iterable[str]) -> None:
    """Write the list of a restored folder's missing objects."""
    wanted = [name for name in names if is_path(name)]
    for each in {name.partition("/")[0] for name in wanted}:
        (folder / CONTENTS / each).mkdir(parents=True, exist_ok=True, mode=0o700)
    (folder / MISSING).write_text(json.dumps(wanted))


class MissingObjects:
    """The objects of one state folder that are still to come. Thread safe."""

    def __init__(self, bucket: Bucket, state_dir: Path, objects: Collection[str]) -> None:
        """Read which are missing; nothing is fetched yet.

        Args:
            bucket: the bucket of the replica.
            state_dir: the state folder.
            objects: names of the objects that the bucket has.
        """
        self._bucket, self._dir = bucket, state_dir
        # Notified when a file has come, or has not.
        self._changed = threading.Condition()
        # What comes now, so that nobody fetches it twice.
        self._coming: set[str] = set()
        self._closing = threading.Event()
        self._names: set[str] = set()
        for left in state_dir.glob(_PARTIAL.format("*")):
            left.unlink()
        with suppress(FileNotFoundError):
            listed = json.loads((state_dir / MISSING).read_text())
            self._names = {name for name in listed if name in objects and not (state_dir / CONTENTS / name).exists()}
        self._thread = threading.Thread(target=self._fetch_all, name="replica-objects", daemon=True)

    @property
    def names(self) -> frozenset[str]:
        """The names of the files, below the contents' folder."""
        with self._changed:
            return frozenset(self._names)

    def start(self) -> None:
        """Begin to fetch them in the background."""
        self._thread.start()

    def fetch(self, name: str) -> bool:
        """Fetch a file if it is missing; return whether it is there.

        Raises:
            BucketError: the S3 does not answer.
        """
        with self._changed:
            self._changed.wait_for(lambda: name not in self._coming)
            if name not in self._names:
                return (self._dir / CONTENTS / name).exists()
            self._coming.add(name)
        partial = self._dir / _PARTIAL.format(threading.get_ident())
        try:
            self._bucket.get_file(f"{OBJECTS}/{name}", partial)
            with self._changed:
                if name in self._names:  # else it was freed meanwhile
                    partial.rename(self._dir / CONTENTS / name)
                    self._names.discard(name)
        finally:
            partial.unlink(missing_ok=True)
            with self._changed:
                self._coming.discard(name)
                self._changed.notify_all()
        return (self._dir / CONTENTS / name).exists()

    def forget(self, name: str) -> None:
        """Fetch a file no more, not by the next process either: no object uses it."""
        with self._changed:
            if name in self._names:
                self._names.discard(name)
                partial = self._dir / _PARTIAL.format("list")
                partial.write_text(json.dumps(sorted(self._names)))
                partial.rename(self._dir / MISSING)

    def wait(self) -> None:
        """Wait until all have come, such as before the folder is copied."""
        if self._thread.is_alive():
            self._thread.join()

    def close(self) -> None:
        """Stop after the file that is just coming; the next start goes on."""
        self._closing.set()
        self.wait()

    def _fetch_all(self) -> None:
        for name in sorted(self.names):
            while not self._closing.is_set():
                try:
                    self.fetch(name)
                    break
                except (BucketError, OSError) as error:  # such as a full disk
                    logger.warning("An object of the restored state does not come, and is tried again: %s", error)
                    self._closing.wait(_AGAIN_SECONDS)
        if not self.names:
            (self._dir / MISSING).unlink(missing_ok=True)
