"""A door to `smdebug.reading.index_reader` for code written for smdebug."""

import sys

from smdebug.reading import index_reader as module
from smdebug.reading.index_reader import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
