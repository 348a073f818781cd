"""The ``smdebug-emulator`` command: one module for each group of commands."""
