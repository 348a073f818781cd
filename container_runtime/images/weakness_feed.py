"""Says whether PyPI tells of known weaknesses, before ``make audit`` asks: pip-audit takes silence for health.

What is asked is what pip-audit asks: a version's page in PyPI's JSON API. The version is one that has weaknesses, so
that an index with such pages but nothing in them is told from one that knows.
"""

from __future__ import annotations

import json
import sys
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import urlopen

_PYPI = "https://pypi.org/pypi"
_WEAK = "urllib3/1.24.1"
_SECONDS = 30


def check_feed(address: str = _PYPI) -> None:
    """Ask for the weaknesses of a version that is known to have some.

    Args:
        address: of the JSON API.

    Raises:
        WeaknessFeedError: none are told; the text says what was asked and what to do.
    """
    asked = f"{address}/{_WEAK}/json"
    try:
        with urlopen(asked, timeout=_SECONDS) as answer:  # noqa: S310 - PyPI, or what a test names
            told = json.load(answer).get("vulnerabilities")
    except HTTPError as error:
        error.close()
        raise WeaknessFeedError(asked, f"the answer was {error.code}") from error
    except (OSError, HTTPException) as error:
        raise WeaknessFeedError(asked, str(getattr(error, "reason", error))) from error
    except (ValueError, AttributeError) as error:
        raise WeaknessFeedError(asked, "the answer was no page of the JSON API") from error
    if not told:
        raise WeaknessFeedError(asked, "the answer names no weakness of a version that has some")


class WeaknessFeedError(Exception):
    """Known weaknesses cannot be asked for.

    Args:
        asked: the address.
        why: what came instead.
    """

    def __init__(self, asked: str, why: str) -> None:
        super().__init__(
            f"Nothing was audited: PyPI's JSON API, which knows of weaknesses, could not be asked ({asked}: {why}); "
            "run make audit where PyPI itself answers, not a mirror of its packages."
        )


if __name__ == "__main__":
    try:
        check_feed(*sys.argv[1:])
    except WeaknessFeedError as error:
        sys.exit(str(error))
