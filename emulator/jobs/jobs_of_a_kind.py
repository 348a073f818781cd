"""Base class of job collections: creation and stop of jobs of one kind."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from emulator.exceptions import ValidationException
from emulator.jobs.store.ledger import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from emulator.jobs.model.processing_job import ProcessingJob
    from emulator.jobs.model.training_job import TrainingJob
    from emulator.jobs.model.warnings import JobWarning
    from emulator.jobs.runs.threads import Run
    from emulator.jobs.store.rows import R
    from emulator.services import Services

_JOB_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")


class JobsOfAKind:
    """Stores the jobs of one kind and starts their runs. Thread safe."""

    def __init__(self, services: Services) -> None:
        """Create the collection with the account's services."""
        self._services = services
        self._store = services.store
        self._settings = services.settings
        self._ledger = services.ledger
        self._threads = services.threads

    def _create(
        self,
        kind: type[R],
        name: str,
        region: str,
        request: Mapping[str, Any],
        build_run: Callable[[R], Run],
        warnings: Sequence[JobWarning] = (),
        **members: Any,
    ) -> R:
        """Store a new job with its warnings and further members of its record, and start its run.

        See ``RunThreads.start`` for errors.
        """
        now_ms = self._ledger.now_ms()
        job = kind(
            account_id=self._settings.account_id,
            region=region,
            name=name,
            id=uuid.uuid4().hex[:12],
            request=request,
            creation_ms=now_ms,
            last_modified_ms=now_ms,
            **members,
        )
        self._threads.start(build_run(job), lambda: self._ledger.create_job(job, request.get("Tags") or (), warnings))
        return job

    def _describe_missing(self, kind: type[TrainingJob | ProcessingJob], name: str) -> str:
        """Build the message for a missing job. It names the regions that have such a job, if there are any."""
        regions = self._store.list_regions_of(kind, name)
        if not regions:
            return NOT_FOUND
        return (
            f"{NOT_FOUND} {name} is in {' and '.join(regions)}: ask there, with AWS_DEFAULT_REGION={regions[0]} or a "
            "client of that region."
        )

    def _ask_stop(self, arn: str) -> bool:
        """Stop the job's run; return False if it has no active run."""
        with self._threads.lock:
            run = self._threads.find(arn)
            if run is not None:
                run.ask_stop(self._settings.stop_grace_seconds)
            return run is not None


def check_name(member: str, name: str) -> None:
    """Check a job's name for every caller, because it becomes part of the names of folders and containers.

    Raises:
        ValidationException: The name is invalid.
    """
    if not _JOB_NAME.fullmatch(name):
        raise ValidationException(
            f"1 validation error detected: Value '{name}' at '{member}' failed to satisfy constraint: Member "
            f"must satisfy regular expression pattern: {_JOB_NAME.pattern}"
        )
