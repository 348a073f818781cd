"""Start of a replica: lease, restoration of the state folder, replication."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from emulator.exceptions import StartupError
from emulator.state.replica.bucket import Bucket, BucketError
from emulator.state.replica.folder import read_record
from emulator.state.replica.lease import Lease, LeaseLostError, build_holder
from emulator.state.replica.replica import Replica

logger = logging.getLogger(__name__)


def open_replica(bucket: Bucket, state_dir: Path, lost: Callable[[str], None]) -> Replica:
    """Take the lease on a bucket, and restore its state if the state folder is empty or has an older one.

    Args:
        bucket: the bucket.
        state_dir: the state folder, whose lock is held.
        lost: called with a message when another emulator has taken the lease.

    Raises:
        StartupError: the bucket cannot be used, another emulator writes to it, or it holds another state.
    """
    began = time.monotonic()
    try:
        bucket.probe()
        record = read_record(state_dir)
        lease = Lease(bucket, build_holder(record.folder, state_dir))
        lease.take()
        try:
            replica = Replica(bucket, lease, state_dir, record, lost)
        except BaseException:
            lease.release()
            raise
    except (BucketError, LeaseLostError) as error:
        raise StartupError(str(error)) from error
    logger.info("The state is kept in %s, too (%.1f s).", bucket, time.monotonic() - began)
    return replica
