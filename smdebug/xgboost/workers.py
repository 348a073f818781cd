"""Which of the processes that train together this one is."""

from xgboost import collective

from smdebug.writing.run_writer import Worker


def get_worker() -> Worker:
    """Return the worker by its rank among those that share XGBoost's communicator; without one it is the only one."""
    if not collective.is_distributed():
        return Worker("worker_0", is_chief=True, count=1)
    rank = collective.get_rank()
    return Worker(f"worker_{rank}", rank == 0, collective.get_world_size())
