"""Functions and classes that only code written for smdebug calls.

`smdebug.core` holds the names by which such code imports them.
"""
