"""Commands of the command line, run in the test's own process."""

from collections.abc import Mapping

from click.testing import CliRunner, Result

from emulator.cli.commands import main


def run_command(*arguments: str, code: int = 0, environment: Mapping[str, str | None] | None = None) -> Result:
    """Run a command, without the half second in which a new interpreter starts and imports.

    What a command leaves to a program of its own is not among its output.

    Args:
        arguments: of the command line.
        code: the exit code that is expected.
        environment: variables besides those of the test; None for one that there is not to be.
    """
    done = CliRunner().invoke(main, arguments, env=environment, catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done
