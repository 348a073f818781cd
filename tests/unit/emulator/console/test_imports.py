"""Test of the imports between the console's modules."""

import re
from graphlib import TopologicalSorter

from emulator.console.build import WEB

_IMPORT = re.compile(r'from "(\.[^"]+)"')


def test_no_modules_import_each_other_in_a_circle() -> None:
    imported = {
        path: [(path.parent / name).resolve().with_suffix(".ts") for name in _IMPORT.findall(path.read_text())]
        for path in (WEB / "src").resolve().rglob("*.ts")
    }
    assert len(imported) > 40
    TopologicalSorter(imported).prepare()  # raises CycleError with the circle
