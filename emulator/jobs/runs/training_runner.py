"""A training job's life, top to bottom."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from container_runtime.runtime import (
    ContainerRuntimeError,
    ContainerStartError,
    ImageNotFoundError,
    NetworkExhaustedError,
)
from emulator.exceptions import NoSuchBucket, ObjectStoreError
from emulator.jobs.records.failures import RequestFailure, StopAsked
from emulator.jobs.uploads.folder import UploadError

if TYPE_CHECKING:
    from emulator.jobs.runs.training import TrainingRun

logger = logging.getLogger(__name__)


def run_training_job(run: TrainingRun) -> None:
    """Drive one job from where it is to its end: the stages of AWS's table in their order.

    Never raises: whatever goes wrong ends this job as Failed and nothing else.
    """
    try:
        if not run.taken_up:
            run.prepare()
            run.enter("Downloading")
            run.download()
            run.start_containers()
        run.enter("Training")
        run.follow_containers()
        run.start_rules()
        exits = run.wait_for_exits()
        run.enter("Uploading")
        run.upload_results(exits)
        run.end(exits)
    except StopAsked:
        run.end_stopped()
    except (RequestFailure, ImageNotFoundError, ContainerStartError) as error:
        run.fail(f"ClientError: {error}")
    except NetworkExhaustedError as error:
        run.fail(f"CapacityError: {error}")
    except UploadError as error:
        kind = "ClientError" if isinstance(error.__cause__, NoSuchBucket) else "InternalServerError"
        run.fail(f"{kind}: {error} What the container left is kept in {run.folder}.", keep_folder=True)
    except (ContainerRuntimeError, ObjectStoreError, OSError) as error:
        logger.warning("Training job %s failed: %s", run.name, error)
        run.fail(f"InternalServerError: {error}")
    except Exception as error:
        logger.exception("Training job %s failed by a defect of the emulator", run.name)
        run.fail(f"InternalServerError: {type(error).__name__}: {error}. The emulator's log has the traceback.")
    finally:
        run.clean_up()
