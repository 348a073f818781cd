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


def list_starts(module: Any) -> tuple[str, ...]:
    """List how the containers of a part are to start, each in a course of its own."""
    starts: tuple[str, ...] = getattr(module, "STARTS", ("warm",))
    return starts


def run_part(name: str, module: Any, course: Course, console: Console) -> float:
    """Run one part, show how far it is, and return the seconds that it took."""
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
        task = progress.add_task(f"{name} {course.place}", total=course.count, failed=0)
        shown = 0

        def tell(failed: int) -> None:
            nonlocal shown
            progress.update(task, advance=1, failed=failed)
            for failure in course.failures[shown:]:
                progress.console.print(
                    f"{name} {course.place} --seed {failure.seed}: {failure.text}", style="red", markup=False
                )
            shown = len(course.failures)

        course.folder, course.tell = Path(folder), tell
        try:
            with course.noting(course.seed):
                module.run(course)
        except KeyboardInterrupt:
            progress.console.print(f"{name} {course.place}: ended after {course.done:,} of {course.count:,} rounds.")
    return time.monotonic() - began


def build_report(results: Sequence[tuple[str, Course, float]]) -> Table:
    """Build the table of figures."""
    table = Table("part", "back end", "rounds", "right", "minutes", "figures", title="soak")
    for name, course, seconds in results:
        figures = "\n".join(f"{key}: {value}" for key, value in course.figures.items())
        right = f"{course.done - course.count_failed():,}"
        table.add_row(name, course.place, f"{course.done:,}", right, f"{seconds / 60:.1f}", figures)
    return table


def main() -> None:
    """Read the arguments, run what they name, print the report; the exit code is 1 where something failed."""
    parts = list_parts()
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(parts)} (default: all)")
    parser.add_argument(
        "--runtime", choices=("process", "docker", "swarm"), help="one back end only (default: all there are)"
    )
    parser.add_argument("--starts", choices=("warm", "cold"), help="of containers (default: all that the part has)")
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
            if runtime not in runtimes or chosen.runtime not in (None, runtime):
                continue
            for starts in [chosen.starts] if chosen.starts else list_starts(module):
                course = Course(runtime, chosen.count or module.LONG, chosen.seed, Path(), starts=starts)
                results.append((name, course, run_part(name, module, course, console)))
    console.print(build_report(results))
    failed = [(name, course, each) for name, course, _ in results for each in course.failures]
    for name, course, failure in failed:
        command = f"python -m tests.soak {name} --runtime {course.runtime} --starts {course.starts}"
        command += f" --seed {failure.seed} --count 1"
        console.print(f"{command}\n{failure.text}\n", style="red", markup=False)
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
