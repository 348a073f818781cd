"""Which of the processes that train together this one is."""

import sys

from smdebug.writing.run_writer import Worker


def get_worker() -> Worker:
    """Return the worker by Horovod's rank where Horovod runs, else the only one."""
    horovod = sys.modules.get("horovod.mxnet")
    if horovod is not None and horovod.is_initialized():
        rank = horovod.rank()
        return Worker(f"worker_{rank}", rank == 0, horovod.size())
    return Worker("worker_0", is_chief=True, count=1)
