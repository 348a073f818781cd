"""Generator of the documentation site from the pages of `docs/`."""
