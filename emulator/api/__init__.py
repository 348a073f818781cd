"""The emulator's own pages: what people and the command line ask of it, beside AWS's protocols."""

PREFIX = "/_emulator/"
"""Where every page but the front page is; no bucket can have this name."""
