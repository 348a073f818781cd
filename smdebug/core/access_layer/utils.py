"""A door to `smdebug.compatibility.run_state` for code written for smdebug."""

import sys

from smdebug.compatibility import run_state as module
from smdebug.compatibility.run_state import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
