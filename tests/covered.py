"""Coverage by package: `make coverage`, then a table of lines and branches."""

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

CHECKOUT = Path(__file__).parents[1]


def tabulate(files: dict[str, dict[str, Any]]) -> str:
    """Return a table of the packages two levels deep, and of the whole.

    Args:
        files: those of ``coverage json``: the summary of each path relative to the checkout.

    Raises:
        ValueError: nothing was covered.
    """
    if not files:
        raise ValueError("Nothing was covered: run `make coverage`.")
    packages: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for path, file in files.items():
        parts = Path(path).parts
        for package in ("/".join(parts[: min(2, len(parts) - 1)]), "all"):
            summary = file["summary"]
            for place, name in enumerate(("covered_lines", "num_statements", "covered_branches", "num_branches")):
                packages[package][place] += summary[name]
    rows = [
        f"{package:40}{share(lines, statements):>8}{share(taken, branches):>10}"
        for package, (lines, statements, taken, branches) in sorted(packages.items())
    ]
    return "\n".join([f"{'package':40}{'lines':>8}{'branches':>10}", *rows])


def share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


@click.command(help=__doc__)
def main() -> None:
    """Combine what the processes of a run have measured, and print the table."""
    coverage = [sys.executable, "-m", "coverage"]
    data = CHECKOUT / ".coverage.json"
    # pytest has combined most; what processes wrote that outlived their test is added.
    subprocess.run([*coverage, "combine", "--append", "--quiet"], cwd=CHECKOUT, check=False)
    # Some tests write modules of a measured name, which are gone by now.
    subprocess.run([*coverage, "json", "--quiet", "--ignore-errors", "-o", str(data)], cwd=CHECKOUT, check=True)
    click.echo(tabulate(json.loads(data.read_text(encoding="utf-8"))["files"]))


if __name__ == "__main__":
    main()
