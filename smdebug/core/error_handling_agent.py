"""A door to `smdebug.compatibility.error_handling_agent` for code written for smdebug."""

import sys

from smdebug.compatibility import error_handling_agent as module
from smdebug.compatibility.error_handling_agent import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
