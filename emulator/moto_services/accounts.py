"""Account lookup by access key."""

from __future__ import annotations

import re

_ACCOUNT_ID = re.compile(r"\d{12}")
# What IAM and STS give out.
_GIVEN_OUT = re.compile(r"[A-Z0-9]{20}")


def find_account(access_key: str, default: str) -> str:
    """Find the account of an access key.

    That is the key itself where it is an account's number, the account of the user or the assumed role that it was
    given to, and ``default`` for any other.
    """
    if _ACCOUNT_ID.fullmatch(access_key):
        return access_key
    if _GIVEN_OUT.fullmatch(access_key):
        from moto.iam.models import iam_backends

        for account_id, partitions in list(iam_backends.items()):
            if any(access_key in backend.access_keys for backend in list(partitions.values())):
                return str(account_id)
    return default
