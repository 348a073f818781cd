"""Durations of tests by folder, from the log of a run.

make test PYTEST_ARGS="--durations=0 --durations-min=0.005" > suite.log
python -m tests.durations suite.log
"""

import re
import sys
from collections import Counter
from pathlib import Path

_DURATION = re.compile(r"([\d.]+)s (?:call|setup|teardown) +tests/([^:]+)(::.+)")
# Folders whose parts mirror packages, and are listed one by one.
_MIRRORS = ("unit", "integration")


def tabulate(log: str) -> str:
    """Return a Markdown table of the folders: seconds with fixtures, share of all seconds, tests and the slowest file.

    Args:
        log: output of pytest with ``--durations=0``. Tests below ``--durations-min`` are not counted.

    Raises:
        ValueError: the log has no durations.
    """
    # In milliseconds.
    folders: Counter[str] = Counter()
    files: dict[str, Counter[str]] = {}
    tests: dict[str, set[str]] = {}
    for seconds, path, test in _DURATION.findall(log):
        parts = path.split("/")
        folder = "/".join(parts[:2]) if parts[0] in _MIRRORS and len(parts) > 2 else parts[0]
        duration = round(1000 * float(seconds))
        folders[folder] += duration
        files.setdefault(folder, Counter())[parts[-1]] += duration
        tests.setdefault(folder, set()).add(path + test)
    if not folders:
        raise ValueError("The log has no durations: run pytest with --durations=0.")
    rows = [
        f"| `{folder}` | {duration / 1000:.0f} | {duration / folders.total():.0%} | {len(tests[folder])} | "
        f"`{slowest}` {most / 1000:.0f} s |"
        for folder, duration in folders.most_common()
        for slowest, most in files[folder].most_common(1)
    ]
    return "\n".join(["| folder | seconds | share | tests | slowest file |", "|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(tabulate(Path(sys.argv[1]).read_text()))  # noqa: T201 - a command
