"""Options of commands, made of the fields of ``Settings``."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from container_runtime.selection import AUTO
from emulator.options import Option
from emulator.settings import Settings, list_options

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

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:  # noqa: ARG002
        """Show all possible values, where there are few. They are looked up for the help only."""
        return None if self._option.choices is None else f"[{'|'.join(self._option.choices())}]"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 -- click's
        """Let the shell complete values of which there are few, and paths."""
        if self._option.choices is not None:
            return [CompletionItem(each) for each in self._option.choices() if each.startswith(incomplete)]
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
        type=SettingType(option),
        metavar=option.metavar,
        multiple=option.multiple,
        help=help_text,
    )


def runtime_option(help_text: str, *, default: str | None = AUTO) -> Callable[[F], F]:
    """Make the option ``--runtime`` of a command that does not have all settings."""
    return click.option(
        "--runtime",
        type=SettingType(list_options()["runtime"]),
        default=default,
        show_default=default is not None,
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
