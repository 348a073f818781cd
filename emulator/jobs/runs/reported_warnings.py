"""Warnings that a container reports in its /opt/ml, taken into the store as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.jobs.records.warnings import MOST_REPORTED_BYTES, parse_reported
from emulator.jobs.staging.opt_ml import WARNINGS

if TYPE_CHECKING:
    from emulator.jobs.records.database.ledger import Ledger
    from emulator.jobs.staging.job_files import JobFolder


class ReportedWarnings:
    """The warnings of one container. Any thread may read them; what was read before is not stored again."""

    def __init__(self, files: JobFolder, arn: str, ledger: Ledger) -> None:
        """Prepare to read.

        Args:
            files: of the container.
            arn: of the training job that the warnings belong to.
            ledger: stores them.
        """
        self._files = files
        self._arn = arn
        self._ledger = ledger
        self._read = b""

    def read(self) -> None:
        """Store what the container has reported by now. A file that is refused or missing reports nothing."""
        content = self._files.read_small_file(WARNINGS, MOST_REPORTED_BYTES)
        if content and content != self._read:
            self._ledger.warn(self._arn, parse_reported(content))
            self._read = content
