"""A door to `smdebug.compatibility.records` for code written for smdebug."""

import sys

from smdebug.compatibility import records as module
from smdebug.compatibility.records import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
