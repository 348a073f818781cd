"""A door to `smdebug.writing.file_writer` for code written for smdebug."""

import sys

from smdebug.writing import file_writer as module
from smdebug.writing.file_writer import *  # noqa: F403 - for type checkers; at run time the module below stands here

sys.modules[__name__] = module
