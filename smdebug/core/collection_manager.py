"""A door to `smdebug.config.collection_manager` for code written for smdebug."""

import sys

from smdebug.config import collection_manager as module
from smdebug.config.collection_manager import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
