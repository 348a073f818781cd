"""A door to `smdebug.environment` for code written for smdebug."""

import sys

from smdebug import environment as module
from smdebug.environment import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
