"""Tools for looking at runs."""
