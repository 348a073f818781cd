"""Tests of the exit of a script that imports tensorflow_io, in separate processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[4]
# A library whose destructors abort, as those of tensorflow-io 0.36 do. It takes the real one's name and no seconds.
LIBRARY = """
import ctypes
libc = ctypes.CDLL(None)
libc.on_exit(ctypes.cast(libc.abort, ctypes.c_void_p), None)
"""
SCRIPT = """
import atexit, sys, tensorflow_io
atexit.register(print, "bye")
print("trained")
sys.exit(7)
"""


@pytest.mark.parametrize(("switch", "code"), [("1", 7), ("0", -6)], ids=["captured", "switched off"])
def test_a_script_exits_with_its_own_code(tmp_path: Path, switch: str, code: int) -> None:
    (tmp_path / "tensorflow_io.py").write_text(LIBRARY)
    config = tmp_path / "debughookconfig.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={
            "PATH": os.defpath,
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{CHECKOUT}",
            "SMDEBUG_CONFIG_FILE_PATH": str(config),
            "USE_SMDEBUG": switch,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "trained\nbye\n", "")
