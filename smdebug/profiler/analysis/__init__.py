"""Profile analysis for notebooks, under upstream's names.

Frames, statistics, charts and Python profiles.
"""
