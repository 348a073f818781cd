"""Index readers by path, without a trial, as code written for smdebug uses them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from smdebug.format.locations import INDEX_DIR
from smdebug.format.tensor_location import TensorLocation
from smdebug.reading.index_files import IndexFile, parse_index, parse_index_name
from smdebug.reading.records.decoder import read_tensor
from smdebug.reading.run_files import LocalRunFiles, RunFiles
from smdebug.storage.s3 import S3RunFiles


class ReadIndexFilesCache:
    """The names of index files that were read.

    Attributes:
        lookup_set: the names.
        cache_limit: with more names than this, those that sort before the token are removed: they are not listed again.
    """

    def __init__(self) -> None:
        self.lookup_set: set[str] = set()
        self.cache_limit = 1000

    def has_not_read(self, index_file: str) -> bool:
        """Return whether a file was not added, or was removed since."""
        return index_file not in self.lookup_set

    def add(self, index_file: str, start_after_key: str | None) -> None:
        """Add a file; `start_after_key` is the token after which files are listed, None at the beginning."""
        if len(self.lookup_set) > self.cache_limit and start_after_key:
            self.lookup_set = {name for name in self.lookup_set if name >= start_after_key}
        self.lookup_set.add(index_file)


class PathIndexReader:
    """The base of `LocalIndexReader` and `S3IndexReader`.

    Args:
        files: the files of the run.
    """

    def __init__(self, files: RunFiles) -> None:
        self._files = files

    def list_index_files(self, start_after_key: str | None = None) -> list[str]:
        """Return the sorted names of the index files after a name, relative to the run."""
        names, _ = self._files.list_index_files(start_after_key or f"{INDEX_DIR}/")
        return [name for name in names if parse_index_name(name)]

    def read_index_files(
        self, start_after_key: str | None = None, range_steps: Sequence[int | None] | None = None
    ) -> list[IndexFile]:
        """Return the parsed index files after a name whose steps are in [begin, end).

        Raises:
            IndexReaderException: a file is damaged. A trial skips it instead.
        """
        begin, end = range_steps or (None, None)
        found = []
        for name in self.list_index_files(start_after_key):
            parsed = parse_index_name(name)
            assert parsed
            if (begin is None or parsed[0] >= begin) and (end is None or parsed[0] < end):
                found.append((name, parsed))
        contents = self._files.read([name for name, _ in found])
        return [
            parse_index(content, *parsed, self._files.locate(name))
            for (name, parsed), content in zip(found, contents, strict=True)
        ]

    def load_tensor_data_from_index_files(
        self, start_after_key: str | None = None, range_steps: Sequence[int | None] | None = None
    ) -> tuple[dict[str, dict[int, dict[str, TensorLocation]]], str | None]:
        """Return all record locations by tag, global step and worker, and the name of the last index file, if any."""
        names = self.list_index_files(start_after_key)
        locations: dict[str, dict[int, dict[str, TensorLocation]]] = {}
        for index in self.read_index_files(start_after_key, range_steps):
            for location in index.tensors:
                locations.setdefault(location.tensorname, {}).setdefault(index.step, {})[index.worker] = location
        return locations, names[-1] if names else start_after_key

    def fetch_tensor_value(self, tensor_location: TensorLocation) -> NDArray[Any]:
        """Return the value of a record; errors as `smdebug.reading.records.decoder.read_tensor` raises them."""
        return read_tensor(self._files, tensor_location)


class LocalIndexReader(PathIndexReader):
    """Reads the index of a run in a local folder."""

    def __init__(self, path: str) -> None:
        super().__init__(LocalRunFiles(Path(path).expanduser()))


class S3IndexReader(PathIndexReader):
    """Reads the index of a run under `s3://bucket/prefix`; errors as `smdebug.storage.s3.S3RunFiles` raises them."""

    def __init__(self, path: str) -> None:
        super().__init__(S3RunFiles(path))
