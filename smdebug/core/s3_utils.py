"""Listing a bucket, under the name that code written for smdebug knows."""

from __future__ import annotations

from smdebug.core.access_layer.s3handler import ListRequest, S3Handler

__all__ = ["list_s3_objects"]


def list_s3_objects(
    bucket: str, prefix: str, start_after_key: str | None = None, delimiter: str = ""
) -> tuple[list[str], str | None]:
    """Return the keys under a prefix, sorted, and the last of them; `start_after_key` where there is none.

    Raises:
        ObjectStoreError: S3 refuses, or does not answer after retries.
    """
    keys = S3Handler.list_prefix(ListRequest(bucket, prefix, delimiter, start_after_key or ""))
    return keys, keys[-1] if keys else start_after_key
