"""What the author of a training job can put right."""

from __future__ import annotations


class JobError(Exception):
    """The job cannot be trained as it is described; the text says what to change."""
