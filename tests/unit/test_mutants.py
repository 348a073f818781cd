"""Tests of what `make mutants` changes."""

import pytest

from tests.mutants import CHECKOUT, SUBJECTS


@pytest.mark.parametrize("name", SUBJECTS)
def test_each_subject_and_its_tests_exist(name: str) -> None:
    subject = SUBJECTS[name]
    missing = [path for path in (*subject.paths, *subject.tests) if not list(CHECKOUT.glob(path))]
    assert missing == []
