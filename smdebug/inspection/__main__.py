"""The process that answers questions about runs: `python -m smdebug.inspection`.

Questions come on standard input, answers go to standard output, each one line of JSON. A question is
``{"path": PATH, "question": NAME, "arguments": {...}}``, its answer ``{"answer": {...}}`` or
``{"error": message, "kind": class of the error}``. The last few runs stay open. Memory is limited, so that too large
a value fails one question and does not affect the machine.
"""

import json
import logging
import os
import resource
import sys
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from smdebug.exceptions import SMDebugError
from smdebug.inspection.profile_questions import PROFILE_QUESTIONS
from smdebug.inspection.questions import QUESTIONS
from smdebug.inspection.watched_profile import WatchedProfile
from smdebug.inspection.watched_run import WatchedRun, asks_for_few
from smdebug.storage.s3 import build_s3_client

_MOST_RUNS = 6
# Address space in bytes, including what numpy and boto3 reserve.
_MOST_MEMORY = 4 * 1024**3

Profiles = OrderedDict[tuple[str, str | None], WatchedProfile]


def main() -> int:
    """Answer questions until standard input ends."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    # Answers have a separate descriptor; anything else that is printed goes to standard error.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        logging.basicConfig(level=logging.WARNING)
        runs: OrderedDict[str, WatchedRun] = OrderedDict()
        profiles: Profiles = OrderedDict()
        if "AWS_ENDPOINT_URL" in os.environ:
            build_s3_client()  # loads boto3, which would take too long for the first question
        for line in sys.stdin:
            answers.write(json.dumps(answer(line, runs, profiles), allow_nan=False) + "\n")
            answers.flush()
    return 0


def answer(line: str, runs: OrderedDict[str, WatchedRun], profiles: Profiles) -> dict[str, Any]:
    """Answer one question.

    Args:
        line: the question as JSON.
        runs: open runs by path, the most recently used last.
        profiles: open profiles by path and folder of unfinished files, in the same order.
    """
    path = ""
    try:
        question = json.loads(line)
        path = str(question["path"])
        name, arguments = question["question"], question["arguments"]
        if name in PROFILE_QUESTIONS:
            return {"answer": _ask_profile(path, name, arguments, profiles)}
        known = runs.get(path)
        if known is None or not known.suffices(name, arguments):
            runs[path] = WatchedRun(path, few=known is None and asks_for_few(name, arguments))
            # The few steps of a preview may not contain a tensor that is saved rarely.
            if not runs[path].suffices(name, arguments):
                runs[path] = WatchedRun(path)
            while len(runs) > _MOST_RUNS:
                runs.popitem(last=False)
        runs.move_to_end(path)
        return {"answer": QUESTIONS[name](runs[path], arguments)}
    except MemoryError:
        runs.clear()
        profiles.clear()
        return {
            "error": f"Reading this takes more than {_MOST_MEMORY // 1024**3} GiB of memory.",
            "kind": "MemoryError",
        }
    except (SMDebugError, OSError, KeyError, ValueError, TypeError) as error:
        # The run may have been replaced by another one at the same path, so that the next question opens it again.
        runs.pop(path, None)
        text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        return {"error": " ".join(text.split()) or type(error).__name__, "kind": type(error).__name__}


def _ask_profile(path: str, name: str, arguments: Mapping[str, Any], profiles: Profiles) -> dict[str, Any]:
    key = path, arguments.get("unfinished")
    profile = profiles.pop(key, None) or WatchedProfile(*key)
    # A profile that cannot be read is opened again by the next question.
    found = PROFILE_QUESTIONS[name](profile, arguments)
    profiles[key] = profile
    while len(profiles) > _MOST_RUNS:
        profiles.popitem(last=False)
    return found


if __name__ == "__main__":
    sys.exit(main())
