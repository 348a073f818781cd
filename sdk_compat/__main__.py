"""The `env` and `run` commands: a client environment for a shell or one command.

``python -m sdk_compat env`` prints the variables; ``python -m sdk_compat run COMMAND…`` runs a command with them.
``python -m sdk_compat remote URL`` says, as JSON, which emulator is at an address.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence

from sdk_compat.aws_variables import EmulatorAnswerError, NoAnswerError, check_emulator
from sdk_compat.environment import (
    DEFAULT_ENDPOINT_URL,
    DEFAULT_REGION,
    STATE_DIR_VARIABLE,
    EndpointError,
    format_exports,
    prepare_command_environment,
    prepare_environment,
)
from sdk_compat.startup.short_polls import PollSecondsError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code. ``run`` replaces this process and does not return."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    if options.action == "remote":
        return _describe_remote(options.url)
    if options.action == "run":
        options.command = options.command[options.command[:1] == ["--"] :]
        if not options.command:
            parser.error("run what? Name a command, or a file that ends in .py.")
    if options.account is not None and not re.fullmatch(r"\d{12}", options.account):
        parser.error(f"--account is {options.account!r}: give an account's 12 digits.")
    try:
        if options.action == "env":
            region = options.region or DEFAULT_REGION
            variables = prepare_environment(
                options.endpoint, os.environ, region=region, account_id=options.account, role_name=options.role
            )
            _check(options.endpoint, region)
            sys.stdout.write(format_exports(variables, os.environ) + "\n")
            return 0
        started, folder = {}, None
        if options.start is not None:
            from sdk_compat.emulator_process import start_for_command  # slow to import, and rarely needed

            options.endpoint, state_dir, temporary = start_for_command(
                options.start, options.state_dir, allow_internet=options.allow_internet
            )
            folder = temporary / "clients"
            # The command may itself run commands of the emulator, which need the state folder.
            started = {STATE_DIR_VARIABLE: state_dir}
        environment = prepare_command_environment(
            options.endpoint,
            os.environ,
            region=options.region,
            folder=folder,
            account_id=options.account,
            role_name=options.role,
        )
        if options.role is None:  # with a role, the emulator has already been called
            _check(options.endpoint, DEFAULT_REGION)
    except (EndpointError, PollSecondsError, EmulatorAnswerError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return _run(options.command, {**environment, **started})


def _describe_remote(url: str) -> int:
    from sdk_compat.remote import describe

    try:
        sys.stdout.write(describe(url) + "\n")
    except (EndpointError, EmulatorAnswerError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _check(endpoint_url: str, region: str) -> None:
    """Check that the endpoint is an emulator. If nothing responds, only print a warning: it may be started later.

    Raises:
        EmulatorAnswerError: another program responds at the endpoint.
    """
    try:
        check_emulator(endpoint_url, region)
    except NoAnswerError as error:
        sys.stderr.write(f"{error}\n")


def _run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Replace this process by ``command``. If the command is a .py file, this Python interpreter runs it."""
    argv = [sys.executable, *command] if command[0].endswith(".py") else list(command)
    sys.stdout.flush()
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - running the user's command is what it is for
    except FileNotFoundError:
        remedy = "pip install awscli" if argv[0] == "aws" else "name a program that PATH has, or give its path"
        sys.stderr.write(f"{argv[0]} cannot be run, because there is no such program: {remedy}.\n")
        return 127
    except OSError as error:
        sys.stderr.write(f"{argv[0]} cannot be run: {error.strerror}.\n")
        return 127


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sdk_compat", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    env = actions.add_parser("env", help='print export lines: eval "$(python -m sdk_compat env)"')
    run = actions.add_parser("run", help="run a command or a Python script with these variables")
    remote = actions.add_parser("remote", help="say which emulator is at an address, as JSON")
    remote.add_argument("url", metavar="URL")
    for action in (env, run):
        action.add_argument(
            "--endpoint",
            default=os.environ.get("AWS_ENDPOINT_URL", DEFAULT_ENDPOINT_URL),
            help="the emulator (default: AWS_ENDPOINT_URL, else %(default)s)",
        )
        action.add_argument("--region", help=f"of clients that name none (default: {DEFAULT_REGION})")
        action.add_argument("--account", help="sign as this account, 12 digits (default: the emulator's)")
        action.add_argument("--role", metavar="NAME", help="sign as this role, for sagemaker.get_execution_role()")
    run.add_argument("--start", metavar="RUNTIME", help="start an emulator that ends with the command, and use it")
    run.add_argument("--state-dir", help="of the emulator that is started; by default one that is removed at its end")
    run.add_argument("--allow-internet", action="store_true", help="let that emulator's containers reach the internet")
    run.add_argument("command", nargs=argparse.REMAINDER, help="a command, or a file that ends in .py")
    return parser


if __name__ == "__main__":
    sys.exit(main())
