"""Tests of what is taken out of the emulator's images."""

import types
from pathlib import Path

import numpy as np

from rules_images.emulator.trimming.__main__ import _UNUSED


def test_what_an_import_of_all_names_of_numpy_needs_stays() -> None:
    """scipy does that, and numpy imports some of its modules only then."""
    modules = [found for name in np.__all__ if isinstance(found := getattr(np, name), types.ModuleType)]
    folders = {Path(module.__file__ or "").parent for module in modules}
    site = Path(np.__file__).parents[1]
    removed = {path for pattern in _UNUSED if pattern.startswith("numpy/") for path in site.glob(pattern)}
    assert site / "numpy" / "f2py" in folders
    assert folders & removed == set()
