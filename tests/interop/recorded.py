"""Comparison of a trial with upstream's recorded answers (`expected.json`)."""

import hashlib
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import smdebug.exceptions
from smdebug import modes
from smdebug.trials import Trial

SHOWN_VALUES = 16


def show_number(value: Any) -> Any:
    if isinstance(value, complex):
        return [show_number(value.real), show_number(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def describe_array(array: Any) -> dict[str, Any]:
    array = np.asarray(array)
    shown = [show_number(value) for value in array.reshape(-1)[:SHOWN_VALUES].tolist()]
    if array.dtype.kind == "U":
        return {"dtype": "str", "shape": list(array.shape), "values": shown}
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"))
    return {
        "dtype": little.dtype.str,
        "sha256_le_c_order": hashlib.sha256(little.tobytes()).hexdigest(),
        "shape": list(array.shape),
        "values": shown,
    }


def check_raises(expected: dict[str, Any], call: Callable[[], object]) -> None:
    wanted = getattr(smdebug.exceptions, expected["raises"])
    with pytest.raises(wanted) as caught:
        call()
    assert type(caught.value) is wanted
    for token in expected["message_mentions"]:
        assert token in str(caught.value)


def check_answer(expected: Any, call: Callable[[], Any]) -> None:
    """An array, a shape or an error."""
    if isinstance(expected, dict) and "raises" in expected:
        check_raises(expected, call)
    elif isinstance(expected, dict):
        assert describe_array(call()) == {key: value for key, value in expected.items() if key != "values_truncated"}
    else:
        assert list(call()) == expected


def check_close(expected: Any, actual: Any) -> None:
    """Computed reductions: another numpy may add up in another order."""
    wanted = float(expected)
    tolerance = 1e-2 if np.asarray(actual).dtype == np.float16 else 1e-6
    assert float(actual) == pytest.approx(wanted, rel=tolerance, abs=1e-12, nan_ok=True)


def answer_query(trial: Trial, call: str) -> Any:
    """Runs a recorded call of one of the forms that the recordings hold."""
    if match := re.fullmatch(r"wait_for_steps\(\[(\d+)\]\)", call):
        return trial.wait_for_steps([int(match[1])])
    match = re.fullmatch(
        r"tensor\('(?P<name>[^']+)'\)(?:\.value\((?P<step>\d+)(?:, worker='(?P<worker>\w+)')?\))?", call
    )
    assert match, f"a call of a form that is not known: {call}"
    tensor = trial.tensor(match["name"])
    return tensor if match["step"] is None else tensor.value(int(match["step"]), worker=match["worker"])


def check_steps(expected: dict[str, list[int]], steps: Callable[[modes], list[int]]) -> None:
    assert {mode.name: steps(mode) for mode in modes} == expected


def check_trial(expected: dict[str, Any], trial: Trial) -> None:
    """The trial's own answers: steps, modes, workers, names, collections and what is known of each step."""
    check_steps(expected["steps"], trial.steps)
    check_steps(expected["steps_show_incomplete"], lambda mode: trial.steps(mode, show_incomplete_steps=True))
    assert sorted(mode.name for mode in trial.modes()) == expected["modes"]
    assert trial.workers() == expected["workers"]
    for step, (mode, mode_step) in expected["global_step_to_mode"].items():
        assert trial.mode_modestep(int(step)) == (modes[mode], mode_step)
        assert trial.global_step(modes[mode], mode_step) == int(step)
    assert trial.tensor_names() == expected["tensor_names"]
    for mode, names in expected["tensor_names_by_mode"].items():
        assert trial.tensor_names(mode=modes[mode]) == names
    for step, names in expected["tensor_names_by_step"].items():
        assert trial.tensor_names(step=int(step)) == names
    for mode, states in expected["has_passed_step"].items():
        assert {step: trial.has_passed_step(int(step), modes[mode]).name for step in states} == states
    assert trial.last_complete_step == expected["last_complete_step"]
    assert trial.loaded_all_steps == expected["loaded_all_steps"]
    check_collections(expected["collections"], trial)


def check_collections(expected: dict[str, Any], trial: Trial) -> None:
    collections = trial.collections()
    assert sorted(collections) == sorted(expected)
    for name, wanted in expected.items():
        found = collections[name].to_json_dict()
        assert found["include_regex"] == wanted["include_regex"]
        assert found["reduction_config"] == wanted["reduction_config"]
        assert found["save_config"] == wanted["save_config"]
        assert found["save_histogram"] == wanted["save_histogram"]
        assert found["tensor_names"] == wanted["tensor_names_in_file"]
        assert trial.tensor_names(collection=name) == wanted["tensor_names_via_trial"]
