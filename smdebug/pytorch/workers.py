"""Worker identity: this process's rank in a distributed training."""

import torch

from smdebug.capture.framework import find_horovod_worker
from smdebug.writing.run_writer import Worker


def get_worker() -> Worker:
    """Return the worker with the global rank of torch.distributed, else of Horovod, else the only worker."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return Worker.of_rank(distributed.get_rank(), distributed.get_world_size())
    return find_horovod_worker("torch")


def get_rank() -> int | None:
    """Return the global rank of torch.distributed; None if it is not initialized."""
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else None


def is_data_loader_worker() -> bool:
    """Return whether this process only loads data for a training process."""
    return torch.utils.data.get_worker_info() is not None
