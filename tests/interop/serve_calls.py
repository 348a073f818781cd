"""Program that answers calls in the interpreter of the real smdebug.

Each line of its input names a module of this folder and a folder of files; each line of its output is what the
module's `read` returned, or the error that it raised. It imports smdebug once for all calls.
"""

import contextlib
import json
import sys
import traceback
from importlib import import_module
from typing import Any

answers = sys.stdout
for line in sys.stdin:
    module, folder = json.loads(line)
    answer: dict[str, Any]
    try:
        # Upstream prints, and a line that is no answer must not stand among them.
        with contextlib.redirect_stdout(sys.stderr):
            answer = {"found": import_module(module).read(folder)}
    except Exception:  # noqa: BLE001 - whatever it is, the test that asked fails with it
        answer = {"error": traceback.format_exc()}
    answers.write(f"{json.dumps(answer, default=str)}\n")
    answers.flush()
