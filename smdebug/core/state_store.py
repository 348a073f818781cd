"""A door to `smdebug.capture.state_store` for code written for smdebug."""

import sys

from smdebug.capture import state_store as module
from smdebug.capture.state_store import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
