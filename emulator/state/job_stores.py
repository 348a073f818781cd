"""Files of the job stores in a state folder: one for each account."""

import re
from pathlib import Path

DEFAULT_ACCOUNT_ID = "123456789012"
_FILE_NAME = re.compile(r"jobs(-(?P<account>\d{12}))?\.sqlite")


def name_store(account_id: str) -> str:
    """Return the name of the file that holds an account's jobs.

    Raises:
        ValueError: it is no account.
    """
    if not re.fullmatch(r"[0-9]{12}", account_id):
        raise ValueError(f"An account has 12 digits, unlike {account_id!r}.")
    return "jobs.sqlite" if account_id == DEFAULT_ACCOUNT_ID else f"jobs-{account_id}.sqlite"


def list_stored_accounts(folder: Path) -> list[str]:
    """List the accounts that have jobs in a state folder, whether an emulator runs on it or not."""
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    found = [_FILE_NAME.fullmatch(name) for name in names]
    return [each["account"] or DEFAULT_ACCOUNT_ID for each in found if each is not None]
