"""Worker identity: this process's rank in a distributed training."""

import json
import os
from typing import Any

from smdebug.capture.framework import find_horovod_worker
from smdebug.writing.run_writer import Worker


def get_worker() -> Worker:
    """Return the worker by its place in TF_CONFIG, which strategies of several processes read too; else by Horovod's.

    The replicas of one process, as those of a MirroredStrategy, are one worker.
    """
    hosts, rank = _read_cluster()
    if hosts > 1:
        return Worker.of_rank(rank, hosts)
    return find_horovod_worker("tensorflow")


def trains_with_other_processes() -> bool:
    """Return whether each step of this process is one of others too, so that all must run the same functions."""
    return _read_cluster()[0] > 1


def get_rank() -> int | None:
    """Return the place of this process among those that train together; None where it is alone."""
    hosts, rank = _read_cluster()
    return rank if hosts > 1 else None


def _read_cluster() -> tuple[int, int]:
    """Return how many processes train together, and this one's place among them: the chief first."""
    try:
        config: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
        cluster, task = config.get("cluster", {}), config.get("task", {})
        chiefs, workers = len(cluster.get("chief", ())), len(cluster.get("worker", ()))
        rank = int(task.get("index", 0)) + (chiefs if task.get("type") == "worker" else 0)
    except (ValueError, AttributeError, TypeError):
        # Not for us to judge: the strategy that reads it says what is wrong.
        return 1, 0
    return max(chiefs + workers, 1), rank
