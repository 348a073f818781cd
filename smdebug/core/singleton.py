"""A door to `smdebug.capture.singleton` for code written for smdebug."""

import sys

from smdebug.capture import singleton as module
from smdebug.capture.singleton import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
