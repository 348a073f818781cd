"""Files of contents that are elsewhere, and come when somebody opens them."""

from collections.abc import Callable
from pathlib import Path

_FETCHERS: dict[Path, Callable[[str], bool]] = {}


def add_fetcher(folder: Path, fetch: Callable[[str], bool]) -> None:
    """Let ``fetch`` bring missing files of a contents' folder.

    Args:
        folder: the contents' folder.
        fetch: brings a file, by its name below the folder; returns False if it knows none of that name.
    """
    _FETCHERS[folder] = fetch


def remove_fetcher(folder: Path) -> None:
    """Bring no more files of a contents' folder. Idempotent."""
    _FETCHERS.pop(folder, None)


def is_there(path: Path) -> bool:
    """Return whether a file of contents exists, after an attempt to bring it if it does not."""
    if path.exists():
        return True
    fetch = _FETCHERS.get(path.parent.parent)
    return fetch is not None and fetch(f"{path.parent.name}/{path.name}")
