"""What ends a run whose stages raise: each error is told as a FailureReason, and harms no other run."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from container_runtime.runtime import (
    ContainerRuntimeError,
    ContainerStartError,
    EngineUnavailableError,
    ImageNotFoundError,
    NetworkExhaustedError,
)
from emulator.exceptions import NoSuchBucket, ObjectStoreError
from emulator.jobs.records.failures import RequestFailure, StopAsked
from emulator.jobs.runs.containers.container import JOB_LABEL, STORE_LABEL, find_hosts
from emulator.jobs.staging.job_files import RefusedError
from emulator.jobs.uploads.folder import UploadError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from container_runtime.runtime import Container
    from emulator.services import Services

logger = logging.getLogger(__name__)

# How long an engine may be away before its jobs end.
_ENGINE_SECONDS = 300.0
_ENGINE_POLL_SECONDS = 0.5


class StagedRun(ABC):
    """The run of one job, of whatever kind, through its stages.

    Attributes:
        kind: what messages call the job.
        output: what of it is read from its folder, as the subject of a sentence.
        arn: the job's.
        name: the job's.
    """

    kind: str
    output: str
    arn: str
    name: str
    _with: Services
    _folder: Path
    _keep_folder: bool

    @abstractmethod
    def _fail(self, reason: str) -> None:
        """Store that the job failed, unless it has ended."""

    def _fail_at_last(self, reason: str) -> None:
        """Store that the job failed, whose end could not be stored."""
        self._fail(reason)

    @abstractmethod
    def _end_unstarted(self) -> None:
        """Store the end of a job that was to stop before anything of it ran."""

    @abstractmethod
    def _clean_up(self) -> None:
        """Remove containers, networks and folders of the job."""

    def _build_labels(self) -> dict[str, str]:
        return {STORE_LABEL: self._with.ledger.store.id, JOB_LABEL: self.arn}

    def _wait_for_engine(self, error: EngineUnavailableError) -> Mapping[str, Container]:
        """Wait until an engine that went away answers, and find what it has of the job, by host.

        Raises:
            EngineUnavailableError: it does not come back.
        """
        logger.warning("%s %s waits for the engine: %s", self.kind, self.name, error)
        until = time.monotonic() + _ENGINE_SECONDS
        while time.monotonic() < until and not self._with.threads.closing:
            time.sleep(_ENGINE_POLL_SECONDS)
            with suppress(ContainerRuntimeError):
                return find_hosts(self.arn, self._with.runtime.find(self._build_labels()))
        raise error

    @contextmanager
    def _failing_alone(self) -> Iterator[None]:
        """Whatever goes wrong in the stages ends this job and nothing else; nothing of it runs afterwards."""
        try:
            try:
                yield
            except StopAsked:
                self._end_unstarted()
            except (RequestFailure, ImageNotFoundError, ContainerStartError) as error:
                self._fail(f"ClientError: {error}")
            except NetworkExhaustedError as error:
                self._fail(f"CapacityError: {error}")
            except RefusedError as error:
                self._keep_folder = True
                self._fail(
                    f"AlgorithmError: {self.output} read from plain files and folders of the job's own, and {error}. "
                    f"What the container left is kept in {self._folder}."
                )
            except UploadError as error:
                kind = "ClientError" if isinstance(error.__cause__, NoSuchBucket) else "InternalServerError"
                self._keep_folder = True
                self._fail(f"{kind}: {error} What the container left is kept in {self._folder}.")
            except (ContainerRuntimeError, ObjectStoreError, OSError) as error:
                logger.warning("%s %s failed: %s", self.kind, self.name, error)
                self._fail(f"InternalServerError: {error}")
            except Exception as error:
                logger.exception("%s %s failed by a defect of the emulator", self.kind, self.name)
                self._fail(
                    f"InternalServerError: {type(error).__name__}: {error}. The emulator's log has the traceback."
                )
            finally:
                self._clean_up()
        except Exception as error:  # the store itself failed
            logger.exception("The state of the %s %s could not be stored", self.kind.lower(), self.name)
            reason = f"InternalServerError: The job's state could not be stored: {error}"
            self._with.threads.store_at_last(lambda: self._fail_at_last(reason))
