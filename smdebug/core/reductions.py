"""A door to `smdebug.format.reductions` for code written for smdebug."""

import sys

from smdebug.format import reductions as module
from smdebug.format.reductions import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
