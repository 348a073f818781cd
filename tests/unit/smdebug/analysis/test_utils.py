from pathlib import Path
from typing import Any

import pytest

from smdebug.analysis.utils import _tensor_name_sorter, no_refresh, parse_bool, parse_list_from_str, refresh
from tests.unit.smdebug.runs import RunMaker
from tests.unit.smdebug.trials.opened_run import open_run


@pytest.mark.parametrize(
    ("given", "value"), [(None, True), ("true", True), ("False", False), (0, False), (1, True), (True, True)]
)
def test_parse_bool(given: Any, value: bool) -> None:
    assert parse_bool(given, True) is value


@pytest.mark.parametrize("given", ["TRUE", "yes", "1", 2])
def test_parse_bool_refuses(given: Any) -> None:
    with pytest.raises(ValueError, match="neither true nor false"):
        parse_bool(given, False)


@pytest.mark.parametrize(("given", "value"), [(None, []), ("", []), ("a, b", ["a", "b"]), (["x"], ["x"])])
def test_parse_list(given: Any, value: list[str]) -> None:
    assert parse_list_from_str(given) == value


def test_tensor_name_sorter() -> None:
    names = ["in_10", "in_2", "in", "a_2"]
    assert sorted(names, key=_tensor_name_sorter) == ["in", "a_2", "in_2", "in_10"]


def test_refreshing_is_switched_within_the_block_for_what_it_yields(tmp_path: Path) -> None:
    RunMaker(tmp_path).end()
    trial, other = open_run(tmp_path), open_run(tmp_path)
    with no_refresh(trial) as given:
        assert given is trial
        assert not given.dynamic_refresh
        both = [trial, other]
        with refresh(both) as given_both:
            assert given_both is both
            assert [each.dynamic_refresh for each in given_both] == [True, True]
        assert not trial.dynamic_refresh
    assert trial.dynamic_refresh
