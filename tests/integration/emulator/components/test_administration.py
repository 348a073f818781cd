"""Tests of states that are restored one after the other."""

from collections.abc import Callable

import pytest

# The owner of the emulator is asked for a restart and does not make one, as if the next request came before it.
_PROGRAM = """
import sys
from pathlib import Path
import requests
from emulator.app import Emulator
from emulator.settings import Settings

asked = []
emulator = Emulator(Settings(state_dir=Path(sys.argv[1]), runtime="process", port=0), lambda: asked.append("restart"))
pages = f"{emulator.settings.endpoint_url}/_emulator"
archive = requests.get(f"{pages}/state").content
first = requests.post(f"{pages}/state", data=archive)
assert (first.status_code, first.json()["previousImport"]) == (202, None), first.text
for page in ("state", "reset/undo"):
    second = requests.post(f"{pages}/{page}", data=archive)
    assert second.status_code == 409, second.text
    print(second.json()["error"])
assert asked == ["restart"]
assert requests.get(f"{pages}/health").json()["lastImport"] is None
emulator.close()
"""


@pytest.mark.slow
def test_a_state_is_restored_before_the_next_is_taken(run_program: Callable[[str], str]) -> None:
    assert run_program(_PROGRAM).splitlines() == ["Another state is being restored: try again in a moment."] * 2
