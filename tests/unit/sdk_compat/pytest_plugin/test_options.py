"""Tests of the options of the pytest plugin."""

from emulator.cli.setting_options import name_option
from emulator.settings import list_options
from sdk_compat.pytest_plugin import pytest_addoption

# Those of the plugin itself, which are no settings of the emulator.
_OF_THE_PLUGIN = {"remote", "keep", "report"}


class Parser:
    """Notes the names of options."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def getgroup(self, _name: str, _description: str) -> "Parser":
        return self

    def addoption(self, name: str, **_given: object) -> None:
        self.names.add(name)


def test_an_option_for_a_setting_is_named_as_that_of_start() -> None:
    parser = Parser()
    pytest_addoption(parser)  # type: ignore[arg-type]
    names = {name.removeprefix("--sagemaker-") for name in parser.names}
    assert names >= _OF_THE_PLUGIN
    settings = {name_option(name, option).removeprefix("--") for name, option in list_options().items()}
    assert names - _OF_THE_PLUGIN <= settings
