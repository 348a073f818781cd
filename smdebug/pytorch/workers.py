"""Which of the processes that train together this one is."""

import sys

import torch

from smdebug.writing.run_writer import Worker


def get_worker() -> Worker:
    """Return the worker by its global rank: torch.distributed's, else Horovod's, else the only one."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return _make_worker(distributed.get_rank(), distributed.get_world_size())
    horovod = sys.modules.get("horovod.torch")
    if horovod is not None and horovod.is_initialized():
        return _make_worker(horovod.rank(), horovod.size())
    return _make_worker(0, 1)


def is_data_loader_worker() -> bool:
    """Tell whether this process only loads data for a training process."""
    return torch.utils.data.get_worker_info() is not None


def _make_worker(rank: int, count: int) -> Worker:
    return Worker(f"worker_{rank}", rank == 0, count)
