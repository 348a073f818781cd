"""Command line reference, generated from click's commands."""

import inspect
import re
from collections.abc import Iterator

import click

from emulator.cli.commands import main

_WIDTH = 100
_AS_IT_STANDS = "\b"
"""Prefix of a paragraph that click must not wrap."""


def build_commands_page() -> str:
    """Return the page, which describes each command with its arguments and options."""
    lines = [
        "# Commands",
        "",
        "This page is written from the commands themselves; `--help` says the same in a terminal.",
        "",
        _take_paragraphs(main.help or ""),
    ]
    for words, command in list_commands(main):
        context = click.Context(command, info_name=words[-1], terminal_width=_WIDTH)
        lines += ["", f"{'#' * (1 + len(words))} {' '.join(words)}", ""]
        usage = " ".join(command.collect_usage_pieces(context))
        lines += ["```text", f"smdebug-emulator {' '.join(words)} {usage}".rstrip(), "```", ""]
        lines.append(_take_paragraphs(command.help or ""))
        options = [
            record for parameter in command.get_params(context) if (record := parameter.get_help_record(context))
        ]
        options = [(name, text) for name, text in options if not name.endswith("--help")]
        if options:
            lines += ["", "| option | |", "|---|---|"]
            lines += [f"| `{_escape(name)}` | {_escape(text)} |" for name, text in options]
    return "\n".join(lines) + "\n"


def list_commands(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that is not hidden, with its full name as words; a group precedes its own commands."""
    for name, command in sorted(group.commands.items()):
        if not command.hidden:
            yield (*before, name), command
            if isinstance(command, click.Group):
                yield from list_commands(command, (*before, name))


def _take_paragraphs(text: str) -> str:
    """Convert click's help text to Markdown; a paragraph that must not be wrapped becomes a code block."""
    return "\n\n".join(_write_paragraph(each) for each in inspect.cleandoc(text).split("\n\n"))


def _write_paragraph(text: str) -> str:
    if text.startswith(_AS_IT_STANDS):
        return f"```text\n{text.removeprefix(_AS_IT_STANDS).strip()}\n```"
    return " ".join(text.split())


def _escape(text: str) -> str:
    return re.sub(r"([|<])", r"\\\1", " ".join(text.split()))
