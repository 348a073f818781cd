"""Files and objects: written whole or not at all, read from disk or S3."""
