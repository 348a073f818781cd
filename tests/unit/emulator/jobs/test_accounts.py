"""Tests of accounts while the emulator ends."""

from typing import Any, cast
from unittest.mock import Mock

import pytest

from emulator.exceptions import InternalFailure
from emulator.jobs.accounts import Accounts


def test_a_new_account_starts_nothing_while_the_emulator_ends() -> None:
    built: list[str] = []

    def build(account_id: str, _store: Any) -> Any:
        built.append(account_id)
        return Mock()

    accounts = Accounts(cast("Any", Mock()), build)
    known = accounts.find_jobs("111111111111")
    accounts.close()
    assert accounts.find_jobs("111111111111") is known, "its requests are refused one by one"
    with pytest.raises(InternalFailure, match="shutting down"):
        accounts.find_jobs("222222222222")
    assert built == ["111111111111"]
