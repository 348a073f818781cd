"""Doors for code written for smdebug, which imports these modules: a door is the module, or the modules, behind it.

`doors.py` lists them, and opens each when it is imported. Nothing of this library imports a door.
"""

from smdebug.core.import_aliases import install

install()
