"""A door to `smdebug.reading.reader` for code written for smdebug."""

import sys

from smdebug.reading import reader as module
from smdebug.reading.reader import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
