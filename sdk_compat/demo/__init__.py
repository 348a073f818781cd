"""The demo: two training jobs on handwritten digits, by an ordinary client of the emulator."""
