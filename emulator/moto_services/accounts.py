"""Account lookup by access key."""

import re

_ACCOUNT_ID = re.compile(r"\d{12}")
# The access keys that IAM and STS issue.
_GIVEN_OUT = re.compile(r"[A-Z0-9]{20}")


def find_account(access_key: str, default: str) -> str:
    """Find the account of an access key.

    If the key is an account number, it is that account. If IAM or STS issued the key, it is the account of the user or
    of the assumed role. For any other key, it is ``default``.
    """
    if _ACCOUNT_ID.fullmatch(access_key):
        return access_key
    if _GIVEN_OUT.fullmatch(access_key):
        from moto.iam.models import iam_backends

        for account_id, partitions in list(iam_backends.items()):
            if any(access_key in backend.access_keys for backend in list(partitions.values())):
                return str(account_id)
    return default
