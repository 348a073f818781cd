"""Trials of runs on S3."""

from collections.abc import Sequence

from smdebug.reading.run_steps import DEFAULT_POLL_INTERVAL_S
from smdebug.storage.s3 import S3RunFiles
from smdebug.trials.trial import Trial


class S3Trial(Trial):
    """A run on S3; other arguments and errors as in `Trial` and `smdebug.storage.s3.S3RunFiles`.

    Args:
        name: the trial's name.
        bucket_name: bucket.
        prefix_name: key prefix of the run, without a trailing slash.
        check: without effect: checksums are always verified.
        index_mode: without effect: a run is always read by its index.
    """

    def __init__(
        self,
        name: str | None,
        bucket_name: str,
        prefix_name: str,
        range_steps: Sequence[int | None] | None = None,
        check: bool = False,  # noqa: ARG002 -- smdebug's signature
        index_mode: bool = True,  # noqa: ARG002 -- smdebug's signature
        cache: bool = False,
        *,
        poll_interval_s: float = DEFAULT_POLL_INTERVAL_S,
    ) -> None:
        self.bucket_name = bucket_name
        self.prefix_name = prefix_name
        path = f"s3://{bucket_name}/{prefix_name}"
        super().__init__(
            S3RunFiles(path), path, name, range_steps=range_steps, cache=cache, poll_interval_s=poll_interval_s
        )
