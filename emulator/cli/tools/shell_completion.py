"""The ``completion install`` command: shell completion."""

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from emulator.cli.running import fail

_PROGRAM, _VARIABLE = "smdebug-emulator", "_SMDEBUG_EMULATOR_COMPLETE"
# Where each shell looks by itself; zsh has no such place in the home.
_FILES = {
    "bash": ("XDG_DATA_HOME", ".local/share", f"bash-completion/completions/{_PROGRAM}"),
    "fish": ("XDG_CONFIG_HOME", ".config", f"fish/completions/{_PROGRAM}.fish"),
    "zsh": ("XDG_DATA_HOME", ".local/share", f"zsh/site-functions/_{_PROGRAM}"),
}


@click.group()
def completion() -> None:
    """Set up shell completion of commands and options."""


@completion.command()
@click.option("--shell", type=click.Choice(sorted(_FILES)), help="Shell to install for  [default: that of $SHELL].")
def install(shell: str | None) -> None:
    """Write the completion file to where the shell looks for it.

    The file is in a subfolder of your home folder.
    """
    name = shell or Path(os.environ.get("SHELL", "")).name
    if name not in _FILES:
        fail(f"The shell is {name or 'unknown'}: give --shell {', --shell '.join(sorted(_FILES))}.")
    variable, default, file = _FILES[name]
    path = Path(os.environ.get(variable) or Path.home() / default) / file
    kind = get_completion_class(name)
    root = click.get_current_context().find_root().command
    assert kind is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(kind(root, {}, _PROGRAM, _VARIABLE).source(), encoding="utf-8")
    click.echo(f"Wrote {path}; a new {name} completes {_PROGRAM}.")
    if name == "zsh":
        click.echo(f"Its folder has to be in fpath, in ~/.zshrc before compinit: fpath+=({path.parent})")
