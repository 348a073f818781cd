"""Options of commands, made of the fields of ``Settings``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from emulator.settings import Settings, list_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.options import Option

F = TypeVar("F", bound="Callable[..., Any]")


class SettingType(click.ParamType):  # type: ignore[type-arg]  # generic in recent versions of click only
    """The value of a setting, read as ``Settings`` declares it."""

    name = "setting"

    def __init__(self, option: Option) -> None:
        self._option = option

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text; click names the option that means nothing."""
        try:
            return self._option.read(value)
        except ValueError as error:
            self.fail(f"{value!r}: {error}." if self._option.wanted else f"{error}.", param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 -- click's
        """Let the shell complete paths."""
        kind = {"DIRECTORY": "dir", "FILE": "file"}.get(self._option.metavar or "")
        return [] if kind is None else [CompletionItem(incomplete, type=kind)]


def setting_option(field_name: str) -> Callable[[F], F]:
    """Make the option of a setting; the command gets its value by the field's name, None where it was not given."""
    option = list_options()[field_name]
    help_text = option.help
    if option.default_words:
        help_text = f"{help_text.removesuffix('.')}  [default: {option.default_words}]."
    name = name_option(field_name, option)
    if option.is_flag:
        return click.option(name, field_name, is_flag=True, default=None, help=help_text)
    return click.option(
        name,
        field_name,
        type=click.Choice(option.choices) if option.choices else SettingType(option),
        metavar=option.metavar,
        multiple=option.multiple,
        help=help_text,
    )


def setting_options(command: F) -> F:
    """Give a command the options of all settings."""
    for field_name, option in reversed(list_options().items()):
        if option.on_command_line:
            command = setting_option(field_name)(command)
    return command


def name_option(field_name: str, option: Option) -> str:
    """Name the option of a setting."""
    return f"--{option.name or field_name.replace('_', '-')}"


def list_given(values: Mapping[str, Any]) -> dict[str, Any]:
    """List the values of the options that were given, for ``dataclasses.replace``."""
    return {field_name: value for field_name, value in values.items() if value not in (None, ())}


def write_arguments(settings: Settings) -> list[str]:
    """Write the arguments by which another process gets the same settings, those of the environment aside."""
    arguments = ["--state-dir", str(settings.state_dir)]
    for field_name, option in list_options().items():
        value = getattr(settings, field_name)
        if not option.on_command_line or value is None or value is False:
            continue
        name = name_option(field_name, option)
        if option.is_flag:
            arguments.append(name)
        else:
            for each in value if option.multiple else [value]:
                arguments += [name, option.write(each)]
    return arguments
