"""Start points that the back end keeps ready for warm pools of training jobs."""

import logging

from container_runtime.runtime import ContainerRuntimeError
from container_runtime.spec import ContainerSpec
from emulator.jobs.model.training_job import TrainingJob
from emulator.jobs.model.warm_pool import count_seconds_left
from emulator.jobs.runs.attempt import build_typical_spec
from emulator.services import Services

logger = logging.getLogger(__name__)


def keep_instances_ready(job: TrainingJob, services: Services, spec: ContainerSpec | None = None) -> None:
    """Keep ready what a job like this one starts from, for as long as the job's warm pool will be Available.

    Args:
        job: a training job; nothing is done if its warm pool is not Available.
        services: the account's services.
        spec: spec of the job's container; None if it is not known any more.
    """
    seconds = count_seconds_left(job, services.ledger.now_ms())
    if seconds <= 0:
        return
    image = job.request["AlgorithmSpecification"]["TrainingImage"]
    try:
        services.runtime.keep_ready(spec or build_typical_spec(image, services.settings), seconds)
    except ContainerRuntimeError as error:
        logger.warning("Nothing is kept ready after %s: %s", job.name, error)


def keep_available_pools(services: Services) -> None:
    """Keep ready again what the warm pools of an earlier process need."""
    store = services.ledger.store
    for region in store.list_regions(TrainingJob):
        for job in store.pages.list_available_pools(region, services.ledger.now_ms()):
            keep_instances_ready(job, services)
