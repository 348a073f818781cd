"""Benchmark runner: ``python -m benchmarks [NAME …]``."""

import argparse
import importlib
import pkgutil

from rich.console import Console

import benchmarks

_NO_BENCHMARKS = ("benchmarks.__main__", "benchmarks.shared.")


def main() -> None:
    found = [each.name for each in pkgutil.walk_packages(benchmarks.__path__, "benchmarks.") if not each.ispkg]
    modules = {name.rpartition(".")[2]: name for name in found if not name.startswith(_NO_BENCHMARKS)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(modules)} (default: all)")
    chosen = parser.parse_args().names or list(modules)
    unknown = sorted(set(chosen) - set(modules))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(modules)}")
    console = Console(highlight=False)
    for name in chosen:
        module = importlib.import_module(modules[name])
        console.rule(f"[bold]{name}[/bold]: {(module.__doc__ or '').splitlines()[0]}", align="left")
        for line in module.measure():
            console.print(f"  {line}")


if __name__ == "__main__":
    main()
