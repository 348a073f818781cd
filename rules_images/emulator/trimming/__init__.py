"""Programs that make the emulator's image small."""
