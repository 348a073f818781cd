"""Timeline of the demo in the README: ``python -m docs_site.demo_times``."""

import os
import re
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
_BLOCK = re.compile(r"```text\nTimeline .*?\n```", re.DOTALL)
# What the README has room for.
_EVENT = re.compile(r" *\d+\.\d s  digits-sick  +(Starting|Training|Stopping|Stopped|rule \w+: IssuesFound).*")


def main() -> None:
    """Run the demo and renew the README."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", "-m", "emulator", "demo", "--runtime", "process"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    machine = f"{os.cpu_count()} cores, local processes, {datetime.now(UTC):%B %Y}"
    README.write_text(replace_timeline(README.read_text(encoding="utf-8"), done.stdout, machine), encoding="utf-8")


def replace_timeline(readme: str, printed: str, machine: str) -> str:
    """Return the README with the events of the demo's sick job in place of those that it has.

    Raises:
        ValueError: the demo printed no event, or the README has no timeline.
    """
    events = [line.rstrip() for line in printed.splitlines() if _EVENT.match(line)]
    if not events or not _BLOCK.search(readme):
        raise ValueError("There is no timeline in what the demo printed, or in the README.")
    block = "\n".join([f"Timeline (each line is an EventBridge event; {machine})", *events])
    return _BLOCK.sub(lambda _: f"```text\n{block}\n```", readme, count=1)


if __name__ == "__main__":
    main()
