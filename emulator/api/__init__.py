"""The emulator's own HTTP API, for its console and its command line."""

PREFIX = "/_emulator/"
"""The path prefix of all routes except the front page. It cannot be the name of an S3 bucket."""

AUTHORITY_PATH = f"{PREFIX}authority"
"""The path of the certificates that clients have to trust. It asks for no token."""
