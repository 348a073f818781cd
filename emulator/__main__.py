"""Entry point of ``python -m emulator`` and of ``smdebug-emulator``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; where only the library was installed, or can run, say what is missing."""
    if sys.version_info < (3, 11):
        raise SystemExit(
            f"The service needs Python 3.11 or later, but this is {sys.version.split()[0]}: you can use only "
            "the library smdebug here."
        )
    try:
        from emulator.cli.commands import main as run_command

        run_command()
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"The service needs {error.name}, which comes with its extra: pip install 'smdebug-emulator[emulator]'"
        ) from error


if __name__ == "__main__":
    main()
