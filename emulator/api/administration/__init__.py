"""Pages that act on the emulator as a whole."""
