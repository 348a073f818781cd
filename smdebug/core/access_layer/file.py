"""A door to `smdebug.compatibility.access_files` for code written for smdebug."""

import sys

from smdebug.compatibility import access_files as module
from smdebug.compatibility.access_files import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
