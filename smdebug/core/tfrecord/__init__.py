"""`smdebug.core.tfrecord`, as code written for smdebug imports it."""

from smdebug.compatibility import records
from smdebug.compatibility.records import *  # noqa: F403

__all__ = records.__all__
