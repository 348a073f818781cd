"""Tests of what is taken out of the emulator's images."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from rules_images.emulator.trimming.__main__ import _UNUSED


def test_what_an_import_of_all_names_of_numpy_needs_stays() -> None:
    """scipy does that, and numpy imports some of its modules only then."""
    found = [find_spec(f"numpy.{name}") for name in np.__all__]
    folders = {Path(module.origin).parent for module in found if module and module.origin}
    site = Path(np.__file__).parents[1]
    removed = {path for pattern in _UNUSED if pattern.startswith("numpy/") for path in site.glob(pattern)}
    assert site / "numpy" / "f2py" in folders
    assert folders & removed == set()
