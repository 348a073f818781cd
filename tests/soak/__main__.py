"""Soak test runner: ``python -m tests.soak [PART …]`` or ``make soak``."""

import argparse
import importlib
import pkgutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

import tests.soak
from container_runtime.docker.daemon import describe_engine
from tests.soak.course import Course


def list_parts() -> dict[str, Any]:
    """List the modules that have rounds to run, by name."""
    names = [each.name for each in pkgutil.iter_modules(tests.soak.__path__) if not each.name.startswith("test_")]
    modules = {name: importlib.import_module(f"tests.soak.{name}") for name in names if name != "__main__"}
    return {name: module for name, module in modules.items() if hasattr(module, "LONG")}


def run_part(name: str, module: Any, runtime: str, count: int, seed: int, console: Console) -> tuple[Course, float]:
    """Run one part in one back end and show how far it is."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("[red]{task.fields[failed]}[/red] failed"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    began = time.monotonic()
    with (
        TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder,
        Progress(*columns, console=console) as progress,
    ):
        task = progress.add_task(f"{name} {runtime}", total=count, failed=0)
        shown = 0

        def tell(failed: int) -> None:
            nonlocal shown
            progress.update(task, advance=1, failed=failed)
            for failure in course.failures[shown:]:
                progress.console.print(
                    f"{name} {runtime} --seed {failure.seed}: {failure.text}", style="red", markup=False
                )
            shown = len(course.failures)

        course = Course(runtime, count, seed, Path(folder), tell)
        try:
            with course.noting(seed):
                module.run(course)
        except KeyboardInterrupt:
            progress.console.print(f"{name} {runtime}: ended after {course.done:,} of {count:,} rounds.")
    return course, time.monotonic() - began


def build_report(results: Sequence[tuple[str, Course, float]]) -> Table:
    """Build the table of figures."""
    table = Table("part", "back end", "rounds", "right", "minutes", "figures", title="soak")
    for name, course, seconds in results:
        figures = "\n".join(f"{key}: {value}" for key, value in course.figures.items())
        right = f"{course.done - course.count_failed():,}"
        table.add_row(name, course.runtime, f"{course.done:,}", right, f"{seconds / 60:.1f}", figures)
    return table


def main() -> None:
    """Read the arguments, run what they name, print the report; the exit code is 1 where something failed."""
    parts = list_parts()
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(parts)} (default: all)")
    parser.add_argument(
        "--runtime", choices=("process", "docker", "swarm"), help="one back end only (default: all there are)"
    )
    parser.add_argument("--count", type=int, help="so many rounds (default: as many as the part has)")
    parser.add_argument(
        "--seed", type=int, default=1, help="of the first round; a failed one's repeats it with --count 1"
    )
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.parts) - set(parts))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(parts)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # either way the report says what was run
    console = Console(highlight=False)
    runtimes = ["process", "docker", "swarm"] if describe_engine() is not None else ["process"]
    results = []
    for name in chosen.parts or parts:
        module = parts[name]
        for runtime in module.RUNTIMES:
            if runtime in runtimes and chosen.runtime in (None, runtime):
                count = chosen.count or module.LONG
                results.append((name, *run_part(name, module, runtime, count, chosen.seed, console)))
    console.print(build_report(results))
    failed = [(name, course, each) for name, course, _ in results for each in course.failures]
    for name, course, failure in failed:
        command = f"python -m tests.soak {name} --runtime {course.runtime} --seed {failure.seed} --count 1"
        console.print(f"{command}\n{failure.text}\n", style="red", markup=False)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
