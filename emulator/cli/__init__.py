"""The ``smdebug-emulator`` command: one module a group of commands, listed in ``commands.py``."""
