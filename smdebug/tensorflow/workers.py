"""Worker identity: this process's rank in a distributed training."""

import json
import os
from typing import Any

from smdebug.capture.framework import find_horovod_worker
from smdebug.writing.run_writer import Worker


def get_worker() -> Worker:
    """Return the worker with the rank from TF_CONFIG, which multi-process strategies also read, or else from Horovod.

    The replicas of one process, such as those of a MirroredStrategy, are one worker.
    """
    hosts, rank = _read_cluster()
    if hosts > 1:
        return Worker.of_rank(rank, hosts)
    return find_horovod_worker("tensorflow")


def get_rank() -> int | None:
    """Return the rank of this process among those that train together; None if it trains alone."""
    hosts, rank = _read_cluster()
    return rank if hosts > 1 else None


def _read_cluster() -> tuple[int, int]:
    """Return the number of processes that train together, and the rank of this one; the chief has rank 0."""
    try:
        config: dict[str, Any] = json.loads(os.environ.get("TF_CONFIG") or "{}")
        cluster, task = config.get("cluster", {}), config.get("task", {})
        chiefs, workers = len(cluster.get("chief", ())), len(cluster.get("worker", ()))
        rank = int(task.get("index", 0)) + (chiefs if task.get("type") == "worker" else 0)
    except (ValueError, AttributeError, TypeError):
        # The strategy that reads TF_CONFIG reports the error.
        return 1, 0
    return max(chiefs + workers, 1), rank
