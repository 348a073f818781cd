"""Rule container: configuration, rule code, runs and verdict."""
