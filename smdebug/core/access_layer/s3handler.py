"""A door to `smdebug.compatibility.s3_handler` for code written for smdebug."""

import sys

from smdebug.compatibility import s3_handler as module
from smdebug.compatibility.s3_handler import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
