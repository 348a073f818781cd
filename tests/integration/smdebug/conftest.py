"""Fixtures of the library's integration tests: those of its unit tests."""

from tests.unit.smdebug.conftest import *  # noqa: F403 - pytest finds fixtures by their names here
