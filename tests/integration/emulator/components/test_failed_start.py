"""A start that fails halfway, and a stop that fails halfway, give everything back."""

from collections.abc import Callable

import pytest

# It begins with a whole start and stop: the threads that moto and its libraries keep are there by then.
_PROGRAM = """
import logging, sys, threading
from pathlib import Path
from unittest.mock import patch
from container_runtime.process.loopback_network import draw_port
from emulator.app import Emulator
from emulator.exceptions import StartupError
from emulator.settings import Settings

def run(port):
    emulator = Emulator(settings(port), lambda: None)
    emulator.close()

def settings(port):
    return Settings(state_dir=Path(sys.argv[1]), runtime="process", port=port)

def list_threads():
    return sorted(each.name for each in threading.enumerate() if each.name != "preload")

logging.basicConfig(level=logging.ERROR, format="%(message)s", stream=sys.stdout)
port = draw_port()
run(port)
before = list_threads()
with patch("emulator.events.schedules.Schedules", side_effect=StartupError("No schedules.")):
    try:
        run(port)
    except StartupError as error:
        print(error)
assert list_threads() == before, list_threads()
with patch("emulator.lambda_functions.invoker.FunctionInvoker.close", side_effect=OSError("It hangs.")):
    run(port)
run(port)
"""


@pytest.mark.slow
def test_what_fails_leaves_neither_thread_nor_port_nor_lock(run_program: Callable[[str], str]) -> None:
    output = run_program(_PROGRAM)
    for said in ("No schedules.", "Functions could not be stopped"):
        assert said in output
