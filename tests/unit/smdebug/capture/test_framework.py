"""Tests of warnings about unsupported framework versions."""

import pytest

from smdebug.capture.framework import check_version


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        ("2.0.0", True),
        ("2.10.1+cpu", True),
        ("3.0.0rc1", False),
        ("1.13", False),
        ("0.4.1", False),
        ("12.0", False),
        ("built from source", True),
    ],
)
def test_versions(version: str, supported: bool, said: pytest.LogCaptureFixture) -> None:
    assert check_version("A framework", version, first=(2, 0), end=(3, 0), missing="all") is supported
    assert len(said.records) == (not supported)


def test_it_is_reported_once_and_what_is_missing(said: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        assert not check_version("Another", "1.2", first=(1, 6), missing="the half of it")
    (record,) = said.records
    assert record.getMessage() == (
        "Another 1.2 is not supported by this hook, which needs 1.6 or later: the half of it is not saved."
    )
