"""Benchmark runner: ``python -m benchmarks [NAME …]``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from pathlib import Path

from rich.console import Console

import benchmarks


def main() -> None:
    names = [
        m.name for m in pkgutil.iter_modules([str(Path(benchmarks.__file__).parent)]) if not m.name.startswith("_")
    ]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(names)} (default: all)")
    chosen = parser.parse_args().names or names
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    console = Console(highlight=False)
    for name in chosen:
        module = importlib.import_module(f"benchmarks.{name}")
        console.rule(f"[bold]{name}[/bold]: {(module.__doc__ or '').splitlines()[0]}", align="left")
        for line in module.measure():
            console.print(f"  {line}")


if __name__ == "__main__":
    main()
