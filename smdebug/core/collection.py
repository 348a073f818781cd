"""A door to `smdebug.config.collection` for code written for smdebug."""

import sys

from smdebug.config import collection as module
from smdebug.config.collection import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
