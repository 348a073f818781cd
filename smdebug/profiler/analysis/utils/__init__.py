"""Frames of a profile and what is computed of them, a merged time line, and parts of a Python profile."""
