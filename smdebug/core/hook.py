"""A door to `smdebug.capture.hook` for code written for smdebug."""

import sys

from smdebug.capture import hook as module
from smdebug.capture.hook import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
