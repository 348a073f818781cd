"""S3 in this process, for the tests of this folder."""

from __future__ import annotations

from tests.unit.smdebug.object_storage import moto_endpoint, storage

__all__ = ["moto_endpoint", "storage"]
