"""Import aliases for code written for smdebug.

`smdebug.core.modes` is the module `smdebug.mode_keys`, and so on.
`import_aliases.py` has the table. This library does not import the aliases itself.
"""

from smdebug.core.import_aliases import install

install()
