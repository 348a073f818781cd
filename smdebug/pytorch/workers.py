"""Worker identity: this process's rank in a distributed training."""

import torch

from smdebug.capture.framework import find_horovod_worker
from smdebug.writing.run_writer import Worker


def get_worker() -> Worker:
    """Return the worker by its global rank: torch.distributed's, else Horovod's, else the only one."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return Worker.of_rank(distributed.get_rank(), distributed.get_world_size())
    return find_horovod_worker("torch")


def get_rank() -> int | None:
    """Return the global rank where several processes train together, None where one does."""
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else None


def is_data_loader_worker() -> bool:
    """Tell whether this process only loads data for a training process."""
    return torch.utils.data.get_worker_info() is not None
