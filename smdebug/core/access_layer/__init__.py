"""`smdebug.core.access_layer`, as code written for smdebug imports it."""

from smdebug.compatibility import access_files, run_state, s3_handler
from smdebug.compatibility.access_files import *  # noqa: F403
from smdebug.compatibility.run_state import *  # noqa: F403
from smdebug.compatibility.s3_handler import *  # noqa: F403
from smdebug.core.access_layer import file, s3, s3handler, utils  # noqa: F401 - attributes after the import

__all__ = [*access_files.__all__, *run_state.__all__, *s3_handler.__all__]
