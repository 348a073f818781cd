import json
from importlib.resources import files

import pytest

from docs_site.image_accounts import build_table


@pytest.mark.nightly  # the table changes with the version of the SDK alone
def test_the_accounts_are_those_of_the_sdk() -> None:
    content = files("emulator.operations.validation").joinpath("image_accounts.json").read_bytes()
    assert json.loads(content) == build_table(), "run: python -m docs_site.image_accounts"
