"""Options: settings that users give, and the values that their text may have."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulator.faults import parse_fault

_USER = re.compile(r"root|(\d{1,9})(?::(\d{1,9}))?")
_ACCESS_KEY = re.compile(r"[\w-]{4,128}")
_AGE = re.compile(r"(\d{1,9})([smhd])")
_AGE_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Option:
    """A setting that users give on the command line, in an environment variable, or both.

    Attributes:
        parse: parses a value; raises ValueError or returns None if the text is invalid.
        wanted: the valid values, for error messages; empty if the errors of ``parse`` name them.
        help: the sentence in ``--help`` and in the reference.
        fits: whether a parsed value is acceptable.
        default_words: the default as ``--help`` shows it; empty to show none.
        name: the name of the option, if it differs from the field's.
        metavar: the placeholder of the value in ``--help``.
        choices: lists all possible values, for an option that has only a few.
        is_flag: whether the option takes no value.
        multiple: whether it may be given several times.
        write: formats a value so that ``parse`` can parse it.
        on_command_line: whether there is a command line option.
        in_environment: whether there is an environment variable.
    """

    parse: Callable[[str], Any]
    wanted: str
    help: str
    fits: Callable[[Any], object] = lambda _: True
    default_words: str = ""
    name: str | None = None
    metavar: str | None = None
    choices: Callable[[], tuple[str, ...]] | None = None
    is_flag: bool = False
    multiple: bool = False
    write: Callable[[Any], str] = str
    on_command_line: bool = True
    in_environment: bool = True

    def read(self, text: str) -> Any:
        """Parse and check a value.

        Raises:
            ValueError: the value is invalid; the text says which values are valid.
        """
        try:
            value = self.parse(text)
        except ValueError as error:
            raise ValueError(self.wanted or str(error)) from error
        if value is None or not self.fits(value):
            raise ValueError(self.wanted)
        return value


def option(value: Any, /, **declared: Any) -> Any:
    """Return a dataclass field with a default, declared as an ``Option``."""
    return field(default=value, metadata={"option": Option(**declared)})


def flag(help_text: str) -> Any:
    """Return a boolean dataclass field that is False by default."""
    declared = Option({"0": False, "1": True}.get, "use 0 or 1", help_text, is_flag=True)
    return field(default=False, metadata={"option": declared})


def parse_age(text: str) -> float:
    """Return the seconds of an age such as ``90s``, ``30m``, ``12h`` or ``7d``.

    Raises:
        ValueError: ``text`` is not an age.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not an age: give a whole number with s, m, h or d")
    return float(int(found[1]) * _AGE_SECONDS[found[2]])


def parse_access_keys(text: str) -> dict[str, str]:
    """Return secret keys by access key id from text such as ``ID:SECRET,ID:SECRET``.

    Raises:
        ValueError: ``text`` does not have this form.
    """
    pairs = dict(each.strip().partition(":")[::2] for each in text.split(",") if each.strip())
    if not all(_ACCESS_KEY.fullmatch(key) and secret for key, secret in pairs.items()):
        raise ValueError("it is not a list of keys")
    return pairs


def parse_folders(text: str) -> tuple[Path, ...]:
    """Return the folders in a list that is separated as PATH is."""
    return tuple(Path(each).expanduser().absolute() for each in text.split(os.pathsep) if each)


def parse_host(text: str) -> str:
    """Return an IP address to listen on.

    Raises:
        ValueError: ``text`` is not an IP address.
    """
    from ipaddress import ip_address  # few commands need it

    return str(ip_address(text))


def parse_names(text: str) -> tuple[str, ...]:
    """Return names separated by commas."""
    return tuple(each.strip() for each in text.split(",")) if text else ()


def check_own_image(text: str) -> str:
    """Return text such as ``pytorch-training=my/dlc:2.3``, or ``@`` and the path of an existing file, made absolute.

    The back end parses it, so that commands that open none do not import it.
    """
    if text.startswith("@"):
        path = Path(text[1:]).expanduser().absolute()
        if not path.is_file():
            raise ValueError(f"{path} is not a file")
        return f"@{path}"
    if not all(part.strip() for part in text.partition("=")):
        raise ValueError("give NAME=IMAGE, such as pytorch-training=my/dlc:2.3, or @FILE")
    return text


def parse_runtime(text: str) -> str:
    """Return the name of a container back end that is installed, or ``auto``.

    Raises:
        ValueError: there is no such back end.
    """
    from container_runtime.back_ends import is_back_end
    from container_runtime.selection import AUTO, list_choices

    # The list is looked up among all that is installed, for which most commands would wait.
    if text != AUTO and not is_back_end(text):
        raise ValueError(f"{text!r} is not a container back end: use one of {', '.join(list_choices())}")
    return text


def parse_file(text: str) -> Path:
    """Return the absolute path of a file or folder, since other processes use it too.

    Raises:
        ValueError: the text is empty, which is not the current folder.
    """
    if not text:
        raise ValueError("it is empty")
    return Path(text).expanduser().absolute()


def check_fault(text: str) -> str:
    """Validate the text of a fault, and return it unchanged.

    Raises:
        ValueError: the text is not a fault; the message says why.
    """
    parse_fault(text)
    return text


def parse_user(text: str) -> tuple[int, int]:
    """Parse ``root``, ``UID`` or ``UID:GID`` into a uid and a gid.

    Raises:
        ValueError: ``text`` has none of these forms.
    """
    found = _USER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a user: give root, UID or UID:GID, such as 1000:1000")
    uid = int(found[1] or 0)
    return uid, int(found[2] or uid)


def may_choose_user(user: tuple[int, int]) -> bool:
    """Return whether containers may run as ``user``: only root can read other users' files."""
    return os.getuid() in (0, user[0])
