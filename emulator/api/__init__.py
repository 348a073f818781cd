"""The emulator's own HTTP API, for its console and its command line."""

PREFIX = "/_emulator/"
"""Where every page but the front page is; no bucket can have this name."""
