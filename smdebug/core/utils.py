"""A door to `smdebug.compatibility.loose_names` for code written for smdebug."""

import sys

from smdebug.compatibility import loose_names as module
from smdebug.compatibility.loose_names import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
