from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys, str_to_mode_keys


def saved(config: SaveConfigMode, count: int = 12) -> list[int]:
    return [step for step in range(count) if config.should_save_step(step)]


def test_open_modes_are_taken_from_another_config_then_from_the_defaults() -> None:
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(7)})
    config.merge_default_save_config(SaveConfig({ModeKeys.TRAIN: SaveConfigMode(5), ModeKeys.EVAL: SaveConfigMode(3)}))
    intervals = {mode.name: config.get_save_config(mode).save_interval for mode in ModeKeys}
    assert intervals == {"TRAIN": 7, "EVAL": 3, "PREDICT": 500, "GLOBAL": 500}
    assert SaveConfig.from_save_config_mode(SaveConfigMode(5)) == SaveConfig(save_interval=5)


@pytest.mark.parametrize(
    ("arguments", "steps"),
    [
        ({}, [0]),
        ({"save_interval": 4, "save_steps": [5], "start_step": 3, "end_step": 9}, [4, 5, 8]),
        ({"save_steps": [3, 7]}, [0, 3, 7]),
        ({"end_step": 0}, []),
        ({"end_step": 0, "save_steps": [2]}, [2]),
        ({"save_interval": "3", "start_step": 1.7}, [3, 6, 9]),
        ({"save_interval": -5}, [0, 5, 10]),
    ],
)
def test_steps(arguments: dict[str, Any], steps: list[int]) -> None:
    assert saved(SaveConfigMode(**arguments)) == steps


@pytest.mark.parametrize("steps", [(1, 2), "1,2", ["1"]])
def test_save_steps_are_a_list_of_int(steps: Any) -> None:
    with pytest.raises(SMDebugValueError, match="list of integers"):
        SaveConfigMode(save_steps=steps)


def test_invalid_numbers() -> None:
    with pytest.raises(ValueError, match="save_interval must be a whole number, not 'x'"):
        SaveConfig(save_interval="x")
    with pytest.raises(SMDebugTypeError, match="a dict of modes, not 5: an interval is given as save_interval"):
        SaveConfig(5)  # type: ignore[arg-type]
    with pytest.raises(SMDebugValueError, match="save_interval 0"):
        SaveConfig(save_interval=0)


def test_open_modes_are_filled_from_another_config() -> None:
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(save_interval=2)})
    with pytest.raises(SMDebugValueError, match="EVAL"):
        config.get_save_config(ModeKeys.EVAL)
    filled = config.filled_from(SaveConfig(save_interval=7))
    assert filled.get_save_config(ModeKeys.TRAIN).save_interval == 2
    assert filled.get_save_config(ModeKeys.EVAL).save_interval == 7


def test_parse() -> None:
    mode = SaveConfigMode(save_interval=3)
    assert SaveConfig.parse(None) == SaveConfig()
    assert SaveConfig.parse(mode) == SaveConfig(save_interval=3)
    assert SaveConfig.parse({"TRAIN": {"save_interval": 3}}) == SaveConfig({ModeKeys.TRAIN: mode})
    with pytest.raises(SMDebugTypeError):
        SaveConfig.parse(5)
    with pytest.raises(KeyError):
        SaveConfig.parse({"NEVER": mode})
    by_name: Any = {"TRAIN": mode}
    with pytest.raises(SMDebugValueError):
        SaveConfig(by_name)


def test_json_form_comes_back() -> None:
    config = SaveConfig({ModeKeys.TRAIN: SaveConfigMode(end_step=4)})
    assert config.to_json_dict()["EVAL"] is None
    assert SaveConfig.from_json(config.to_json()) == config


def test_mode_names() -> None:
    assert str_to_mode_keys("eval") is ModeKeys.EVAL
    with pytest.raises(ValueError, match="TRAIN"):
        str_to_mode_keys("TRAIN")


@given(
    interval=st.integers(-7, 7).filter(bool),
    start=st.integers(-3, 20) | st.none(),
    end=st.integers(-3, 40) | st.none(),
    single=st.lists(st.integers(-3, 40), max_size=3),
    step=st.integers(0, 45),
)
def test_the_next_saved_step_is_the_first_that_is_to_be_saved(
    interval: int, start: int, end: int, single: list[int], step: int
) -> None:
    config = SaveConfigMode(interval, start, end, single)
    expected = next((later for later in range(step, 100) if config.should_save_step(later)), None)
    assert config.get_next_step(step) == expected


def test_unknown_mode_is_named_with_the_known() -> None:
    with pytest.raises(KeyError, match=r"'train' is not a mode.*TRAIN, EVAL, PREDICT, GLOBAL"):
        SaveConfig.parse({"train": {"save_interval": 3}})


def test_the_config_of_one_mode_is_replaced() -> None:
    config = SaveConfig(save_interval=2)
    config.set_save_config(ModeKeys.EVAL, SaveConfigMode(save_interval=3))
    assert [step for step in range(7) if config.should_save_step(ModeKeys.EVAL, step)] == [0, 3, 6]
    assert [step for step in range(7) if config.should_save_step(ModeKeys.TRAIN, step)] == [0, 2, 4, 6]
    for mode, replacement in ((ModeKeys.EVAL, {"save_interval": 3}), ("EVAL", SaveConfigMode())):
        with pytest.raises(SMDebugValueError, match="takes a mode and a SaveConfigMode"):
            config.set_save_config(mode, replacement)  # type: ignore[arg-type]
