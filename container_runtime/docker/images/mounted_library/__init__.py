"""Files that start smdebug in an image which does not contain it.

The engine mounts them beside the package itself; nothing of this project imports them.
"""
