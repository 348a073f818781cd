"""Tests of docs/install.md: its commands are valid, without installation."""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

from container_runtime.images.catalogue import ImageCatalogue
from emulator import VERSION
from emulator.cli.commands import main

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/install.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = re.findall(r"^ {4}(\S.*)$", PAGE, re.MULTILINE)
COMMANDS = [*LINES, *re.findall(r"`((?:pip|smdebug-emulator) [^`]+)`", PAGE)]


def find_commands(program: str) -> list[list[str]]:
    """Words of the commands of a program, without its name."""
    found = [shlex.split(command) for command in COMMANDS if command.startswith(f"{program} ")]
    assert found
    return [words[1:] for words in found]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_shell_takes_it(command: str) -> None:
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", find_commands("smdebug-emulator"), ids=" ".join)
def test_the_emulator_has_the_command(words: list[str]) -> None:
    command: click.Command = main
    while isinstance(command, click.Group):
        name, *words = words
        command = command.commands[name]
    # Where a command is only named, its arguments may be missing.
    command.make_context(name, list(words), resilient_parsing=not words)
    if command is main.commands["images"].commands["build"]:  # type: ignore[attr-defined]
        assert ImageCatalogue().select(words)


def test_pip_is_given_requirements_and_our_own_wheel() -> None:
    wanted = [word for action, *words in find_commands("pip") if action == "install" for word in words]
    wheels = [word.partition("[")[0] for word in wanted if ".whl" in word]
    assert wheels
    for wheel in wheels:
        name, version, *_ = parse_wheel_filename(wheel)
        assert (name, str(version)) == (PROJECT["name"], VERSION)
    for word in wanted:
        if ".whl" not in word:
            assert Requirement(word).name


def test_extras_are_those_there_are() -> None:
    assert set(re.findall(r"(?<=[`l])\[([a-z0-9]+)\]", PAGE)) == PROJECT["optional-dependencies"].keys()
