"""A door to `smdebug.config.reduction_config` for code written for smdebug."""

import sys

from smdebug.config import reduction_config as module
from smdebug.config.reduction_config import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
