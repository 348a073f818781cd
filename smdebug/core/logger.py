"""A door to `smdebug.logger` for code written for smdebug."""

import sys

from smdebug import logger as module
from smdebug.logger import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
