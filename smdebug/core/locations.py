"""Where the files of a run lie, relative to its folder. Pure text: nothing here touches a disk or a bucket."""

from __future__ import annotations

import re

EVENTS_DIR = "events"
INDEX_DIR = "index"
COLLECTIONS_DIR = "collections/000000000"
TENSORBOARD_DIR = "tensorboard"
CLAIM_FILE = "claim.smd"
END_OF_JOB_FILE = "training_job_end.ts"
# Readers match the end of a name, so a file that is still being written is invisible to them.
TEMP_SUFFIX = ".tmp"
COLLECTIONS_SUFFIX = "_collections.json"

STEP_DIGITS = 12
BLOCK_DIGITS = 9
STEPS_PER_BLOCK = 1000

_WORKER_IN_FILE = re.compile(r"^\d+_(.+)\.(?:json|csv|tfevents)$")
_WORKER_IN_COLLECTIONS = re.compile(r"^(.+)_collections\.(?:json|ts)$")


def get_event_path(step: int, worker: str) -> str:
    """Return the path of the event file of a global step; `worker` as it stands in file names."""
    number = f"{step:0{STEP_DIGITS}d}"
    return f"{EVENTS_DIR}/{number}/{number}_{worker}.tfevents"


def get_index_block_dir(step: int) -> str:
    """Return the folder of the index files of the thousand steps that `step` is one of."""
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
    """Return the global step in the name of an event or index file; ValueError where the name starts with none."""
    return int(_base_name(path).partition("_")[0])


def parse_worker(path: str) -> str:
    """Return the worker in the name of an event or index file; ValueError where there is none.

    Only the file's own name is looked at, so an underscore in a folder's name cannot spoil it.
    """
    found = _WORKER_IN_FILE.match(_base_name(path))
    if not found:
        raise ValueError(f"{path!r} is not named <step>_<worker>.json, .csv or .tfevents.")
    return deserialize_tf_device(found.group(1))


def parse_worker_of_collections_file(path: str) -> str:
    """Return the worker that wrote a collections file; ValueError for a name without one."""
    found = _WORKER_IN_COLLECTIONS.match(_base_name(path))
    if not found:
        raise ValueError(f"{path!r} is not named <worker>_collections.json.")
    return deserialize_tf_device(found.group(1))


def serialize_tf_device(device: str) -> str:
    """Make a file-name part of a TensorFlow device such as `/job:worker/replica:0/task:1/device:GPU:0`."""
    return device.replace("/", "_").replace(":", "-")


def deserialize_tf_device(worker: str) -> str:
    """Undo `serialize_tf_device`; names of other workers (`worker_0`, `algo-1`) stay as they are."""
    if not worker.startswith("_"):
        return worker
    return worker.replace("_", "/").replace("-", ":")


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]
