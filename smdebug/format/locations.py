"""Paths of the files of a run, relative to its folder."""

import os
import re
import socket
from pathlib import Path

from smdebug.format.tensor_location import TensorLocation as TensorLocation
from smdebug.format.tensor_location import TensorShape as TensorShape
from smdebug.mode_keys import ModeKeys
from smdebug.unsupported import make_unsupported

EVENTS_DIR = "events"
INDEX_DIR = "index"
COLLECTIONS_DIR = "collections/000000000"
TENSORBOARD_DIR = "tensorboard"
CLAIM_FILE = "claim.smd"
END_OF_JOB_FILE = "training_job_end.ts"
# Readers match the end of a name, so that they ignore files that are still being written.
TEMP_SUFFIX = ".tmp"
COLLECTIONS_SUFFIX = "_collections.json"

STEP_DIGITS = 12
BLOCK_DIGITS = 9
STEPS_PER_BLOCK = 1000

_WORKER_IN_FILE = re.compile(r"^\d+_(.+)\.(?:json|csv|tfevents)$")
_WORKER_IN_COLLECTIONS = re.compile(r"^(.+)_collections\.(?:json|ts)$")


def get_event_path(step: int, worker: str) -> str:
    """Return the path of the event file of a global step; `worker` as in file names."""
    number = f"{step:0{STEP_DIGITS}d}"
    return f"{EVENTS_DIR}/{number}/{number}_{worker}.tfevents"


def get_index_block_dir(step: int) -> str:
    """Return the folder that contains the index file of a step, and those of up to 999 other steps."""
    return f"{INDEX_DIR}/{step // STEPS_PER_BLOCK:0{BLOCK_DIGITS}d}"


def get_index_path(step: int, worker: str) -> str:
    """Return the path of the index file of a global step."""
    return f"{get_index_block_dir(step)}/{step:0{STEP_DIGITS}d}_{worker}.json"


def get_collections_path(worker: str) -> str:
    """Return the path of a worker's collections file."""
    return f"{COLLECTIONS_DIR}/{worker}{COLLECTIONS_SUFFIX}"


def get_tensorboard_path(mode_name: str, step: int, pid: int, hostname: str) -> str:
    """Return the path of a TensorBoard file, relative to the TensorBoard folder."""
    return f"{mode_name}/{step:0{STEP_DIGITS}d}_{pid}_{hostname}.tfevents"


def parse_step(path: str) -> int:
    """Return the global step in the name of an event or index file; ValueError if there is none."""
    return int(_base_name(path).partition("_")[0])


def parse_worker(path: str) -> str:
    """Return the worker in the name of an event or index file; ValueError if there is none.

    Folder names are ignored: they may contain underscores.
    """
    found = _WORKER_IN_FILE.match(_base_name(path))
    if not found:
        raise ValueError(f"{path!r} is not named <step>_<worker>.json, .csv or .tfevents.")
    return deserialize_tf_device(found.group(1))


def parse_worker_of_collections_file(path: str) -> str:
    """Return the worker in the name of a collections file; ValueError if there is none."""
    found = _WORKER_IN_COLLECTIONS.match(_base_name(path))
    if not found:
        raise ValueError(f"{path!r} is not named <worker>_collections.json.")
    return deserialize_tf_device(found.group(1))


def serialize_tf_device(device: str) -> str:
    """Return a TensorFlow device such as `/job:worker/replica:0/task:1/device:GPU:0` in the form of file names."""
    return device.replace("/", "_").replace(":", "-")


def deserialize_tf_device(worker: str) -> str:
    """Reverse `serialize_tf_device`; other worker names (`worker_0`, `algo-1`) are returned unchanged."""
    if not worker.startswith("_"):
        return worker
    return worker.replace("_", "/").replace("-", ":")


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]


class IndexFileLocationUtils:
    """Paths of index files, for code written for smdebug."""

    MAX_INDEX_FILE_NUM_IN_INDEX_PREFIX = STEPS_PER_BLOCK

    @staticmethod
    def get_index_path(path: str) -> str:
        """Return the folder of the index files of the run at `path`."""
        return f"{path.rstrip('/')}/{INDEX_DIR}"

    @staticmethod
    def get_index_prefix_for_step(step_num: int) -> str:
        """Return the name of the folder that holds the index files of a global step: `000000001` for 1234."""
        return f"{step_num // STEPS_PER_BLOCK:0{BLOCK_DIGITS}d}"

    @staticmethod
    def next_index_prefix_for_step(step_num: int) -> str:
        """Return the name of the folder after that of the step."""
        return IndexFileLocationUtils.get_index_prefix_for_step(step_num + STEPS_PER_BLOCK)

    @staticmethod
    def get_index_key_for_step(prefix: str, step_num: int, worker_name: str) -> str:
        """Return the path of the index file of a step of the run at `prefix`, for a worker name as trials show it."""
        return f"{prefix.rstrip('/')}/{get_index_path(step_num, serialize_tf_device(worker_name))}"

    @staticmethod
    def parse_step_from_index_file_name(index_file_name: str) -> int:
        """Return the global step of an index file; ValueError for a name without one."""
        return parse_step(index_file_name)

    @staticmethod
    def get_prefix_from_index_file(index_file: str) -> str:
        """Return the path of the run that an index file belongs to; ValueError if there is none."""
        run, found, _ = index_file.rpartition(f"/{INDEX_DIR}/")
        if not found:
            raise ValueError(f"{index_file!r} is not in a folder named {INDEX_DIR}.")
        return run


class TensorFileLocation:
    """The path of the event file of a worker and global step."""

    def __init__(self, step_num: int, worker_name: str) -> None:
        """Create the location for a global step and a worker name as trials show it."""
        self.step_num = int(step_num)
        self.worker_name = worker_name

    @classmethod
    def load_filename(cls, path: str) -> "TensorFileLocation":
        """Return the location that a path names; ValueError if it is not the path of an event file."""
        return cls(parse_step(path), parse_worker(path))

    def get_filename(self) -> str:
        """Return the name of the file."""
        return _base_name(get_event_path(self.step_num, serialize_tf_device(self.worker_name)))

    def get_file_location(self, trial_dir: str = "") -> str:
        """Return the path, below `trial_dir` if that is given."""
        return _join(trial_dir, get_event_path(self.step_num, serialize_tf_device(self.worker_name)))

    @staticmethod
    def get_dir(trial_dir: str = "") -> str:
        """Return the folder of the event files."""
        return _join(trial_dir, EVENTS_DIR)

    @staticmethod
    def get_step_dirs(trial_dir: str) -> list[str]:
        """Return the sorted names of the step folders of a run; FileNotFoundError if it has none."""
        folder = Path(TensorFileLocation.get_dir(trial_dir))
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())

    @staticmethod
    def get_step_dir_path(trial_dir: str, step_num: int) -> str:
        """Return the folder of a step's event files."""
        return TensorFileLocation(step_num, "").get_file_location(trial_dir).rpartition("/")[0]


class TensorboardFileLocation:
    """The path of the TensorBoard file of this process and a global step."""

    def __init__(self, step_num: int, worker_name: str, mode: ModeKeys = ModeKeys.GLOBAL) -> None:
        """Create the location for a global step and its mode; the worker is not part of the path."""
        self.step_num = int(step_num)
        self.worker_name = worker_name
        self.mode = mode

    def get_file_location(self, base_dir: str = "") -> str:
        """Return the path, below `base_dir` if that is given."""
        path = get_tensorboard_path(self.mode.name, self.step_num, os.getpid(), socket.gethostname())
        return _join(base_dir, path)


TraceFileLocation = make_unsupported("TraceFileLocation", "this library writes no trace files of smdebug's profiler.")


def _join(folder: str, path: str) -> str:
    return f"{folder.rstrip('/')}/{path}" if folder else path
