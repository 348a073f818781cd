"""The ``smdebug-emulator`` command: one package for each group of commands."""
