"""Interpreters that have imported what programs need before these begin."""

from pathlib import Path

FOLDER = Path(__file__).parent
"""Folder of the programs, which interpreters of images run."""
