"""Tests of the command list: each command is found and imported on demand."""

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import emulator.cli
from emulator import VERSION
from emulator.cli.commands import main

FOLDER = Path(emulator.cli.__file__).parent
# Not needed to become the command that run is given: importing them takes longer than it may.
SLOW = ("boto3", "docker", "email", "flask", "importlib.metadata", "moto", "rich", "urllib3")


def test_every_command_there_is_has_its_place() -> None:
    modules = [".".join(path.relative_to(FOLDER.parent).with_suffix("").parts) for path in FOLDER.rglob("*.py")]
    found = {
        command
        for module in modules
        for command in vars(import_module(f"emulator.{module}")).values()
        if isinstance(command, click.Command) and command is not main
    }
    of_groups = {each for group in found if isinstance(group, click.Group) for each in group.commands.values()}
    assert set(main.commands.values()) == found - of_groups
    for name, command in main.commands.items():
        assert (name, command in found) == (command.name, True)
    assert len(main.commands) == len(dict(main.commands))


@pytest.mark.parametrize("name", ["jsob", "stop_job", "jobs.describe", ""])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    refused = CliRunner().invoke(main, [name])
    assert (refused.exit_code, f"No such command '{name}'" in refused.output) == (2, True)
    assert name not in main.commands


def test_only_what_run_needs_is_imported() -> None:
    parse = "main.commands['run'].make_context('run', ['true'])"
    # `make coverage` has every interpreter import more at its start.
    source = f"import sys; at_start = {{*sys.modules}}; from emulator.cli.commands import main; {parse}"
    source += "; print(*sys.modules.keys() - at_start)"
    done = subprocess.run([sys.executable, "-P", "-c", source], capture_output=True, text=True, check=True, timeout=400)
    loaded = done.stdout.split()
    assert "emulator.cli.service.clients" in loaded
    # Back ends are listed in the metadata of every installed distribution; `auto` needs no list.
    assert not {*SLOW, "hashlib", "subprocess"} & set(loaded)


def test_events_of_a_stopped_emulator_import_no_part_of_the_service(tmp_path: Path) -> None:
    (tmp_path / "jobs.sqlite").touch()
    arguments = ["events", "--state-dir", str(tmp_path)]
    source = f"import sys; from emulator.cli.commands import main; main({arguments!r}, standalone_mode=False)"
    source = f"import atexit, sys; atexit.register(lambda: print(*sys.modules)); {source}"
    done = subprocess.run(
        [sys.executable, "-P", "-c", source], capture_output=True, text=True, check=False, timeout=400
    )
    assert "jobs.sqlite cannot be read as a job store" in done.stderr
    loaded = set(done.stdout.split())
    assert "emulator.events.sent_messages" in loaded
    assert not {"boto3", "emulator.jobs", "moto", "sqlalchemy"} & loaded


def test_help_of_all_commands_imports_no_part_of_the_service() -> None:
    source = "import sys; from emulator.cli.commands import main; main(['--help'], standalone_mode=False)"
    source += "; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", source], capture_output=True, text=True, check=True, timeout=400)
    *_, loaded = done.stdout.splitlines()
    assert "emulator.cli.jobs.logs" in loaded.split()
    assert not {"boto3", "docker", "emulator.jobs", "flask", "moto", "rich", "sqlalchemy"} & set(loaded.split())


def test_the_shell_completes_every_command() -> None:
    asked = {"_SMDEBUG_EMULATOR_COMPLETE": "bash_complete", "COMP_WORDS": "smdebug-emulator ", "COMP_CWORD": "1"}
    given = CliRunner().invoke(main, [], prog_name="smdebug-emulator", env=asked)
    assert set(given.output.splitlines()) == {f"plain,{name}" for name in main.commands}


def test_the_version_is_the_distributions() -> None:
    assert version("smdebug-emulator") == VERSION


def test_a_missing_package_of_the_service_is_named() -> None:
    source = (
        "import sys; sys.modules['docker'] = None; sys.argv = ['smdebug-emulator', 'engine', 'status']; "
        "from emulator.__main__ import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", source], capture_output=True, text=True, check=False, timeout=400
    )
    wanted = "The service needs docker, which comes with its extra: pip install 'smdebug-emulator[emulator]'\n"
    assert (done.returncode, done.stderr) == (1, wanted)


def list_helps(command: click.Command, *words: str) -> Iterator[tuple[tuple[str, ...], str]]:
    # Of 80 columns, click leaves two free.
    shown = CliRunner().invoke(main, [*words, "--help"], prog_name="smdebug-emulator", terminal_width=78)
    yield words, shown.output
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from list_helps(each, *words, name)


def test_every_help_fits_80_columns_and_cuts_no_sentence() -> None:
    # The help of `rules` is printed by the program that it becomes.
    for words, text in (each for each in list_helps(main) if each[0] != ("rules",)):
        assert max(map(len, text.splitlines())) <= 80, words
        assert not [line for line in text.splitlines() if line.endswith("...") and "[OPTIONS]" not in line], words


def test_the_commands_are_listed_under_headings() -> None:
    text = CliRunner().invoke(main, ["--help"]).output
    headings = ("Service:", "Jobs:", "Data:", "Images:", "Tools:")
    assert [line for line in text.splitlines() if line in headings] == list(headings)
    for name in main.commands:
        assert sum(line.startswith(f"  {name} ") for line in text.splitlines()) == 1
