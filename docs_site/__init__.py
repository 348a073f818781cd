"""What makes the pages of `docs/` a site."""
