"""Data frames and statistics of a profile, and a merged timeline."""
