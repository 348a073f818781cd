"""Fixtures of the library's tests that start processes and servers: those of its unit tests."""

from tests.unit.smdebug.conftest import *  # noqa: F403 - pytest finds fixtures by their names here
