"""The console's types of the API's answers."""

import pytest

from emulator.api.description.typescript import COMMAND, TYPES, render_types


@pytest.mark.slow
def test_the_console_s_types_are_those_of_the_openapi_document() -> None:
    assert TYPES.read_text() == render_types(), f"Run `{COMMAND}` (make console-types)."
