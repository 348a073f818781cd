"""Durable S3: opening, locking, restoring and closing of moto's S3 with a journal.

Before a request is answered, the journal stores the current state of every object and bucket that the request changed.
"""

import logging
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from moto.s3.models import FakeBucket, S3Backend, s3_backends
from moto.s3.responses import S3Response

from emulator.exceptions import StartupError
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.s3.bodies import passing_on, serving_in_pieces, taking_received
from emulator.moto_services.s3.content import StoredContent
from emulator.moto_services.s3.documents import checking
from emulator.moto_services.s3.index_rows import (
    describe_bucket,
    describe_object,
    find_bucket,
    find_journal,
    read_upload_files,
    restore_bucket,
    restore_object,
)
from emulator.moto_services.s3.journal import ContentsFollower, S3Journal
from emulator.moto_services.s3.journalled_backend import JournalledBackend, forget_instances
from emulator.moto_services.s3.listings import writing_contents
from emulator.moto_services.s3.notifications import describing_eventbridge
from emulator.moto_services.s3.policy import judge_permission, judging_lists, saying_denied
from emulator.security.hosts import find_bucket_in_host
from emulator.state.disk import DiskBudget

logger = logging.getLogger(__name__)


class DurableS3:
    """The S3 of this process, which is kept in a folder between ``open_s3`` and ``close``."""

    def __init__(self, journal: S3Journal, closers: ExitStack) -> None:
        self.journal = journal
        self._closers = closers
        self._sweep = threading.Thread(
            target=journal.remove_leftovers, args=(read_upload_files,), name="s3-leftovers", daemon=True
        )
        self._sweep.start()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Prevent changes to objects inside the ``with`` block."""
        with s3_access():
            _commit(self.journal)
            yield

    def reset(self) -> None:
        """Remove every bucket and object, also from the folder."""
        with s3_access():
            for account in s3_backends.values():
                for backend in account.values():
                    for bucket in backend.buckets.values():
                        self.journal.touch_bucket(bucket.name)
                        for key in bucket.keys:
                            self.journal.touch(bucket.name, key)
            _drop_backends()

    def close(self) -> None:
        """Detach from the folder, which keeps its content. Afterwards, S3 is empty and in memory only."""
        self._sweep.join()
        with service_lock("s3"):
            self._closers.close()


def open_s3(folder: Path, disk: DiskBudget | None = None, follower: ContentsFollower | None = None) -> DurableS3:
    """Make S3 durable in ``folder``, and restore the buckets and objects there. What was in S3 before is dropped.

    A process has only one S3, because moto creates its backends itself. It can be opened again after it is closed.

    Args:
        folder: where buckets and objects are stored.
        disk: refuses contents for which the disk has no space.
        follower: keeps a copy of the folder elsewhere.

    Raises:
        StartupError: the folder cannot be used.
    """
    journal = S3Journal(folder, disk, follower)
    with ExitStack() as closers, service_lock("s3"):
        closers.callback(journal.close)
        backend_class = type("JournalledBackend", (JournalledBackend,), {"journal": journal})
        closers.enter_context(_fresh_backends(backend_class))
        moto_response: Any = S3Response
        own = {
            "_bucket_response": judging_lists(checking("/{Bucket}", moto_response._bucket_response)),  # noqa: SLF001
            "_key_response": saying_denied(checking("/{Bucket}/{Key+}", moto_response._key_response)),  # noqa: SLF001
            "_get_key": serving_in_pieces(moto_response._get_key),  # noqa: SLF001 -- moto has no other place
            "key_response": passing_on(moto_response.key_response),
            "serialized": writing_contents(moto_response.serialized),
            "setup_class": taking_received(moto_response.setup_class),
            **_reading_host(moto_response),
        }
        closers.enter_context(replaced(S3Response, **own))
        closers.enter_context(describing_eventbridge())
        closers.enter_context(replaced(FakeBucket, get_permission=judge_permission(FakeBucket.get_permission)))
        try:
            _restore(journal)
        except sqlite3.Error as error:
            raise StartupError(
                f"S3's index in {folder} cannot be read ({error}): run smdebug-emulator check --mend, or move the "
                "folder away."
            ) from error
        return DurableS3(journal, closers.pop_all())


def _reading_host(moto_response: Any) -> dict[str, Any]:
    """Make moto read a bucket from the host name where the emulator's access checks do, and nowhere else.

    moto takes the first part of any host name with a dot for a bucket, such as that of a machine of a company.
    """
    parse = moto_response.parse_bucket_name_from_url

    def find_bucket_of(request: Any) -> str | None:
        return find_bucket_in_host(request.headers.get("host") or request.host)

    def parse_bucket_name_from_url(response: Any, request: Any, url: str) -> str:
        return find_bucket_of(request) or parse(response, request, url)

    return {
        "subdomain_based_buckets": staticmethod(lambda request: find_bucket_of(request) is not None),
        "parse_bucket_name_from_url": parse_bucket_name_from_url,
    }


def _restore(journal: S3Journal) -> None:
    for bucket_row in journal.read_buckets():
        restore_bucket(journal, bucket_row)
    left_out: Counter[str] = Counter()
    for object_row in journal.read_objects():
        if find_bucket(object_row.bucket) is None:
            left_out[object_row.bucket] += 1
        else:
            restore_object(journal, object_row)
    for bucket, number in left_out.items():
        logger.warning("S3: %d objects are left out, because their bucket %r is not there.", number, bucket)
    journal.forget_touched()
    forget_instances()


@contextmanager
def s3_access() -> Iterator[None]:
    """Hold S3's lock. Before the lock is released, write the changes to the journal, if there is one."""
    with service_lock("s3"):
        try:
            yield
        finally:
            if (journal := find_journal()) is not None:
                _commit(journal)


def _commit(journal: S3Journal) -> None:
    journal.commit(lambda name: describe_bucket(name, journal.report_unkept), describe_object)


def commit_touched() -> None:
    """Write pending changes to the journal, such as those that were not made by a request to S3."""
    journal = find_journal()
    if journal is not None and journal.has_touched:
        with s3_access():
            pass  # writes it when it ends


def stage_content(bucket: str, key: str, data: bytes | Path | BinaryIO) -> bytes | StoredContent:
    """Convert ``data`` to the value that ``put_object`` takes.

    This is the slow part of a put. It needs no lock.

    Raises:
        OSError: ``data`` is or names a file that cannot be read, or the disk is full.
    """
    journal = find_journal()
    if journal is not None:
        return journal.stage(bucket, key, data)
    if isinstance(data, bytes):
        return data
    if isinstance(data, Path):
        return data.read_bytes()
    data.seek(0)
    return data.read()


def drop_unclaimed(content: bytes | StoredContent) -> None:
    """Remove staged contents that no object uses."""
    journal = find_journal()
    if journal is not None and isinstance(content, StoredContent):
        journal.drop_unclaimed(content)


@contextmanager
def _fresh_backends(backend_class: type[S3Backend]) -> Iterator[None]:
    """Make moto create its S3 backends from ``backend_class``. moto has no backends before and after the block."""
    _drop_backends()
    with replaced(s3_backends, backend=backend_class):
        yield
        _drop_backends()


def _drop_backends() -> None:
    forget_instances()
    for account in s3_backends.values():
        for backend in account.values():
            for bucket in backend.buckets.values():
                for upload in bucket.multiparts.values():
                    upload.parts.clear()  # otherwise moto disposes of them, which removes their files
        account.reset()
    s3_backends.clear()
    s3_backends.bucket_accounts.clear()
