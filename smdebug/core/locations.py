"""A door to `smdebug.format.locations` for code written for smdebug."""

import sys

from smdebug.format import locations as module
from smdebug.format.locations import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
