"""Commands about all data of the emulator and its events."""
