"""Tags of stored resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emulator.exceptions import ResourceLimitExceeded, ResourceNotFound
from emulator.jobs.model.arns import lower_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from emulator.jobs.store.store import JobStore


MAX_TAGS = 50


class Tags:
    """The tags of one account's jobs."""

    def __init__(self, store: JobStore) -> None:
        """Take an open store."""
        self._store = store

    def add(self, arn: str, tags: Sequence[Mapping[str, str]]) -> Sequence[Mapping[str, str]]:
        """Set tags and return all of the resource's.

        Raises:
            ResourceNotFound, ResourceLimitExceeded.
        """
        arn = self._find_arn(arn)
        with self._store.transaction() as transaction:
            transaction.set_tags(arn, tags)
            every = transaction.list_tags(arn)
            if len(every) > MAX_TAGS:
                raise ResourceLimitExceeded(f"A resource can have {MAX_TAGS} tags, and {arn} would have {len(every)}.")
        return every

    def delete(self, arn: str, keys: Sequence[str]) -> None:
        """Take the tags with these keys from a resource; a key that it does not have is not an error.

        Raises:
            ResourceNotFound.
        """
        arn = self._find_arn(arn)
        with self._store.transaction() as transaction:
            transaction.delete_tags(arn, keys)

    def list_all(self, arn: str) -> Sequence[Mapping[str, str]]:
        """All tags of a resource.

        Raises:
            ResourceNotFound.
        """
        arn = self._find_arn(arn)
        return self._store.list_tags(arn)

    def _find_arn(self, asked: str) -> str:
        """Find the ARN of the job that a client means, which may have built it of the job's name as it was given."""
        arn = lower_name(asked)
        if not self._store.has_arn(arn):
            raise ResourceNotFound(f"Could not find a resource with the ARN {asked}.")
        return arn
