"""``python -m emulator``, and the ``smdebug-emulator`` command."""

from __future__ import annotations


def main() -> None:
    """Run the command line; where only the library was installed, say what is missing."""
    try:
        from emulator.cli.commands import main as run_command
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"The service needs {error.name}, which comes with its extra: pip install 'smdebug-emulator[emulator]'"
        ) from error
    run_command()


if __name__ == "__main__":
    main()
