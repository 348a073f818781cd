"""A door to `smdebug.reading.tensor` for code written for smdebug."""

import sys

from smdebug.reading import tensor as module
from smdebug.reading.tensor import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
