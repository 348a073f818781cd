"""A door to `smdebug.mode_keys` for code written for smdebug."""

import sys

from smdebug import mode_keys as module
from smdebug.mode_keys import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
