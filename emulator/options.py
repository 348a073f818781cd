"""Options: settings that users give, and the values that their text may have."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulator.faults import parse_fault

if TYPE_CHECKING:
    from collections.abc import Callable

_USER = re.compile(r"root|(\d{1,9})(?::(\d{1,9}))?")
_ACCESS_KEY = re.compile(r"[\w-]{4,128}")
_AGE = re.compile(r"(\d{1,9})([smhd])")
_AGE_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that users give on the command line, in the environment, or in either.

    Attributes:
        parse: reads a value from its text; raises ValueError, or returns None, if the text is not a value.
        wanted: the values that can be used, for error messages; empty if the errors of ``parse`` say it.
        help: the sentence in ``--help`` and in the reference.
        fits: whether a parsed value can be used.
        default_words: the default as ``--help`` shows it; empty to show none.
        name: the name of the option, if it is not that of the field.
        metavar: the placeholder of the value in ``--help``.
        choices: all possible values, for an option that has only a few.
        is_flag: whether the option takes no value.
        multiple: whether it may be given several times.
        write: writes a value so that ``parse`` reads it.
        on_command_line: whether there is an option.
        in_environment: whether there is a variable.
    """

    parse: Callable[[str], Any]
    wanted: str
    help: str
    fits: Callable[[Any], object] = lambda _: True
    default_words: str = ""
    name: str | None = None
    metavar: str | None = None
    choices: tuple[str, ...] = ()
    is_flag: bool = False
    multiple: bool = False
    write: Callable[[Any], str] = str
    on_command_line: bool = True
    in_environment: bool = True

    def read(self, text: str) -> Any:
        """Read a value.

        Raises:
            ValueError: it cannot be used; the text says what can.
        """
        try:
            value = self.parse(text)
        except ValueError as error:
            raise ValueError(self.wanted or str(error)) from error
        if value is None or not self.fits(value):
            raise ValueError(self.wanted)
        return value


def option(value: Any, /, **declared: Any) -> Any:
    """Make a dataclass field with a default, declared as an ``Option``."""
    return field(default=value, metadata={"option": Option(**declared)})


def flag(help_text: str) -> Any:
    """Make a dataclass field that is true or false, and false by default."""
    declared = Option({"0": False, "1": True}.get, "use 0 or 1", help_text, is_flag=True)
    return field(default=False, metadata={"option": declared})


def parse_age(text: str) -> float:
    """Return the seconds of an age such as ``90s``, ``30m``, ``12h`` or ``7d``.

    Raises:
        ValueError: it is none.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no age: give a whole number with s, m, h or d")
    return float(int(found[1]) * _AGE_SECONDS[found[2]])


def parse_access_keys(text: str) -> dict[str, str]:
    """Return the secret keys by their ids, of a text such as ``ID:SECRET,ID:SECRET``.

    Raises:
        ValueError: it is none.
    """
    pairs = dict(each.strip().partition(":")[::2] for each in text.split(",") if each.strip())
    if not all(_ACCESS_KEY.fullmatch(key) and secret for key, secret in pairs.items()):
        raise ValueError("it is no list of keys")
    return pairs


def parse_folders(text: str) -> tuple[Path, ...]:
    """Return the folders of a list such as PATH is one."""
    return tuple(Path(each).expanduser().absolute() for each in text.split(os.pathsep) if each)


def parse_host(text: str) -> str:
    """Return an IP address to listen on.

    Raises:
        ValueError: it is none.
    """
    from ipaddress import ip_address  # which hardly a command needs

    return str(ip_address(text))


def parse_file(text: str) -> Path:
    """Return the path of a file or folder; it is named to other processes, so it is absolute.

    Raises:
        ValueError: the text is empty, which is not the current folder.
    """
    if not text:
        raise ValueError("it is empty")
    return Path(text).expanduser().absolute()


def check_fault(text: str) -> str:
    """Return the text of a fault as it is.

    Raises:
        ValueError: it is none; the text says why.
    """
    parse_fault(text)
    return text


def parse_user(text: str) -> tuple[int, int]:
    """Return uid and gid of ``root``, ``UID`` or ``UID:GID``.

    Raises:
        ValueError: it is none of these.
    """
    found = _USER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no user: give root, UID or UID:GID, such as 1000:1000")
    uid = int(found[1] or 0)
    return uid, int(found[2] or uid)


def may_choose_user(user: tuple[int, int]) -> bool:
    """Tell whether containers may run as ``user``: what another one's wrote only root can read."""
    return os.getuid() in (0, user[0])
