"""Coverage by package: `make coverage` runs tests and prints a table.

Meanwhile, a `.pth` file starts coverage in each interpreter of `.venv`, and of the environments that are in `.cache`
before, whatever its environment variables are. Not measured are interpreters without site-packages (`python -S`),
copies of files, as a job has of its script, and processes that a signal kills.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from coverage import Coverage

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("container_runtime", "emulator", "rules_images", "sdk_compat", "smdebug")
BACK_ENDS = tuple(f"container_runtime/{name}" for name in ("docker", "process", "swarm", "warm"))
FOLDER = CHECKOUT / ".cache" / "coverage"
DATA = ".coverage"
VARIABLE = "COVERAGE_PROCESS_CONFIG"
# The first of these files: what later ones import is measured.
PTH = "a0_measured.pth"
# Environments of images have no coverage of their own. The variable is gone after the call, so that jobs find no trace
# of it; coverage's own patch of `execve` would leave it there.
START = """\
import os, sys
from contextlib import suppress

sys.path.append({packages!r})
import coverage
sys.path.pop()
os.environ[{variable!r}] = {config!r}
coverage.process_startup()
del os.environ[{variable!r}]

def saving(replace):
    def save_and_replace(*arguments):
        with suppress(Exception):
            coverage.Coverage.current().save()
        replace(*arguments)
    return save_and_replace

os.execv, os.execve = saving(os.execv), saving(os.execve)
"""


@contextmanager
def measuring(folder: Path, places: Iterable[Path]) -> Iterator[None]:
    """Measure each interpreter that starts within the block with one of these folders of packages.

    Args:
        folder: where each process writes a file, whichever user's it is. It is emptied first.
        places: folders of packages, for the version of Python that runs this.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    folder.chmod(0o1777)
    included = [f"{CHECKOUT / package}/*" for package in PACKAGES]
    coverage = Coverage(str(folder / DATA), config_file=str(CHECKOUT / "pyproject.toml"), include=included)
    start = START.format(packages=sysconfig.get_path("purelib"), variable=VARIABLE, config=coverage.config.serialize())
    files = [place / PTH for place in places]
    try:
        for file in files:
            file.write_text(f"import os; exec({start!r}, {{}})\n", encoding="utf-8")
        yield
    finally:
        for file in files:
            file.unlink(missing_ok=True)


def combine(folder: Path) -> Coverage:
    """Combine what the processes have measured."""
    coverage = Coverage(str(folder / DATA), config_file=str(CHECKOUT / "pyproject.toml"))
    coverage.combine()
    return coverage


def summarize(coverage: Coverage) -> dict[str, dict[str, Any]]:
    """Return the files of ``coverage json``, among them those of which nothing has run."""
    for package in PACKAGES:
        coverage.get_data().touch_files([str(path) for path in (CHECKOUT / package).rglob("*.py")])
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        coverage.json_report(outfile=str(report))
        files: dict[str, dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["files"]
    return files


def tabulate(files: dict[str, dict[str, Any]]) -> str:
    """Return a table of the packages two levels deep, of the whole, and of the whole without the back ends.

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
        package = "/".join(parts[: min(2, len(parts) - 1)])
        wholes = ("all",) if package in BACK_ENDS else ("all", "all but back ends")
        for row in (package, *wholes):
            summary = file["summary"]
            for place, name in enumerate(("covered_lines", "num_statements", "covered_branches", "num_branches")):
                packages[row][place] += summary[name]
    rows = [
        f"{package:40}{share(lines, statements):>8}{share(taken, branches):>10}"
        for package, (lines, statements, taken, branches) in sorted(packages.items())
    ]
    return "\n".join([f"{'package':40}{'lines':>8}{'branches':>10}", *rows])


def share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(options: Sequence[str]) -> None:
    """Run pytest with OPTIONS, and print the table."""
    packages = Path(sysconfig.get_path("purelib"))
    others = (CHECKOUT / ".cache").glob(f"*/*/{packages.relative_to(sys.prefix)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # no start file is left behind
    with measuring(FOLDER, [packages, *others]):
        code = subprocess.run([sys.executable, "-m", "pytest", *options], cwd=CHECKOUT, check=False).returncode
    os.chdir(CHECKOUT)
    click.echo(tabulate(summarize(combine(FOLDER))))
    sys.exit(code)


if __name__ == "__main__":
    main()
