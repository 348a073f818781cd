from contextlib import nullcontext
from typing import Any
from unittest.mock import patch

import pytest

from emulator.jobs.staging.hook_parameters import (
    COLLECTIONS,
    PARAMETERS,
    REDUCTIONS,
    WHOLE_NUMBERS,
    find_differing,
    find_ignored,
    find_slips,
)
from emulator.jobs.staging.job_warnings import find_request_warnings
from smdebug.config import json_config
from smdebug.config.collection import CollectionKeys
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.json_config import COLLECTION_PARAMETERS, HOOK_PARAMETERS
from smdebug.config.reduction_config import ALLOWED_NORMS, ALLOWED_REDUCTIONS
from smdebug.exceptions import SMDebugError
from smdebug.job_warnings import HOOK_PARAMETER_IGNORED


def build_request(name: str = "losses", hook: dict[str, str] | None = None, **parameters: str) -> dict[str, Any]:
    collection = {"CollectionName": name, "CollectionParameters": parameters}
    return {"DebugHookConfig": {"HookParameters": hook or {}, "CollectionConfigurations": [collection]}}


def test_the_names_are_those_of_smdebug() -> None:
    assert {value for key, value in vars(CollectionKeys).items() if key.isupper()} == COLLECTIONS
    assert WHOLE_NUMBERS <= HOOK_PARAMETERS & COLLECTION_PARAMETERS
    assert set(ALLOWED_REDUCTIONS) | {f"{norm}_norm" for norm in ALLOWED_NORMS} == {
        name for name in REDUCTIONS if not name.startswith("abs_")
    }
    read = {name for name in HOOK_PARAMETERS if name.endswith(("interval", "_step"))}
    assert read == WHOLE_NUMBERS
    assert PARAMETERS == {"HookParameters": HOOK_PARAMETERS, "CollectionParameters": COLLECTION_PARAMETERS}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("gradient", "gradients"),
        ("Gradients", "gradients"),
        ("weight", "weights"),
        ("loss", "losses"),
        ("bias", "biases"),
    ],
)
def test_nearly_the_name_of_a_built_in_collection(written: str, meant: str) -> None:
    slips = list(find_slips(build_request(written)))
    assert slips == [f"the collection {written} is not built in and has no include_regex. Did you mean {meant}?"]
    assert list(find_slips(build_request(written, include_regex="relu"))) == []


@pytest.mark.parametrize("name", ["losses", "all", "custom", "relu_outputs_of_block", "my_weights_2", "", "x"])
def test_a_custom_name(name: str) -> None:
    assert list(find_slips(build_request(name, save_interval="5"))) == []


def test_what_is_not_a_whole_number() -> None:
    request = build_request(hook={"train.save_interval": "1.5", "save_steps": "1,2"}, end_step="ten", start_step=" 3 ")
    assert list(find_slips(request)) == [
        "train.save_interval of HookParameters is '1.5', which is not a whole number.",
        "end_step of the collection losses is 'ten', which is not a whole number.",
    ]


@pytest.mark.parametrize(
    ("name", "value", "said", "is_refused"),
    [
        ("save_interval", "0", "which selects no step: give 1 or more.", True),
        ("eval.save_interval", "-5", "which counts as 5: give 1 or more.", False),
        ("save_steps", "1,x", "which is not whole numbers with commas between them.", True),
        ("train.save_steps", "", "which is not whole numbers with commas between them.", True),
        ("reductions", "mean, median", "of which median is not a reduction. Known: min, max, mean,", True),
        ("reductions", "l1", "of which l1 is not a reduction. Known: ", True),
        ("include_regex", "a{1,2},(", "of which '(' is not a regular expression (missing ), unterminated", True),
        ("save_histogram", "yes", "which is neither true nor false.", True),
        ("include_workers", "both", "which counts as one: give all or one.", False),
    ],
)
def test_a_value_that_fails_or_does_nothing(name: str, value: str, said: str, *, is_refused: bool) -> None:
    request = build_request("losses", None, **{name: value})
    (found,) = find_slips(request)
    assert found.startswith(f"{name} of the collection losses is {value!r}, {said}")
    with pytest.raises((ValueError, SMDebugError)) if is_refused else nullcontext():
        build_hook_collections(request)


@pytest.mark.parametrize("name", ["save_raw_tensor", "save_shape"])
def test_a_flag_that_a_hook_takes_from_no_text(name: str) -> None:
    request = build_request(hook={"reductions": "min", name: "true"})
    (found,) = find_slips(request)
    assert found.startswith(f"{name} of HookParameters is 'true', but together with reductions the hook rejects texts")
    with pytest.raises(SMDebugError):
        build_hook_collections(request)
    assert list(find_slips(build_request(hook={name: "true"}))) == []


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"start_step": "5", "end_step": "3"}, "end_step of HookParameters is 3, and start_step is 5"),
        ({"end_step": "-1"}, "end_step of HookParameters is -1, and start_step is 0"),
        ({"start_step": "5", "train.end_step": "5"}, "train.end_step of HookParameters is 5, and start_step is 5"),
    ],
)
def test_an_end_before_its_start(parameters: dict[str, str], said: str) -> None:
    assert list(find_slips(build_request(hook=parameters))) == [f"{said}: no step lies between them."]


def build_hook_collections(request: dict[str, Any]) -> CollectionManager:
    manager, config = CollectionManager(), request["DebugHookConfig"]
    arguments = json_config.collect_hook_config_params(config)
    json_config.add_collections_to_manager(manager, config, arguments)
    return manager


@pytest.mark.parametrize(
    "parameters",
    [
        {"save_interval": "1", "eval.save_interval": "100", "save_steps": "1, 2", "save_all": "True"},
        {"reductions": "min, abs_max,l1_norm,abs_l2_norm", "include_regex": "relu.*, ^a\\d$"},
        {"eval.end_step": "0", "start_step": "0"},
        {"start_step": "5", "end_step": "3", "save_steps": "7"},
        {"start_step": "5", "end_step": "6", "reductions": ""},
    ],
)
def test_values_that_are_right(parameters: dict[str, str]) -> None:
    assert list(find_slips(build_request(hook=parameters))) == []
    build_hook_collections(build_request(hook=parameters))


def test_a_collection_inherits_its_start_from_the_hook() -> None:
    request = build_request(hook={"start_step": "10", "train.end_step": "20"}, end_step="5")
    assert list(find_slips(request)) == [
        "end_step of the collection losses is 5, and start_step is 10: no step lies between them."
    ]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (
            build_request(hook={"start_step": "1", "save_intervall": "5"}),
            "HookParameters: 'save_intervall' is unknown and is ignored. Did you mean save_interval?",
        ),
        (
            build_request("losses", save_interval="5", save_hist="1"),
            "CollectionParameters of losses: 'save_hist' is unknown and is ignored. Did you mean save_histogram?",
        ),
    ],
)
def test_an_unknown_parameter_is_reported_as_the_hook_says_it(request_: dict[str, Any], said: str) -> None:
    assert list(find_ignored(request_)) == [said]
    resources = {"ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1}}
    (warning,) = find_request_warnings(request_ | resources, None, None)
    assert (warning.code, warning.text) == (HOOK_PARAMETER_IGNORED, said)
    reported = []
    with patch.object(json_config, "warn_user", lambda code, text, *rest: reported.append((code, text % rest))):
        arguments = json_config.collect_hook_config_params(request_["DebugHookConfig"])
        json_config.add_collections_to_manager(CollectionManager(), request_["DebugHookConfig"], arguments)
    assert reported == [(HOOK_PARAMETER_IGNORED, said)]


def test_a_slip_is_a_warning_of_the_request() -> None:
    resources = {"ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1}}
    (warning,) = find_request_warnings({**build_request("gradient"), **resources}, None, None)
    assert warning.code == "HookParameterDoubtful"
    assert warning.text.endswith("Did you mean gradients?")


@pytest.mark.parametrize("hook", [None, {}, {"CollectionConfigurations": [{}]}])
def test_a_hook_without_parameters(hook: Any) -> None:
    assert list(find_slips({"DebugHookConfig": hook})) == []
    assert list(find_ignored({"DebugHookConfig": hook})) == []


OF_TRAINING = {"train.save_interval": "5"}


@pytest.mark.parametrize(
    ("hook", "entries", "said"),
    [
        ({}, [OF_TRAINING, {}], ["train.save_interval of gradients is 5, then what the hook has"]),
        (OF_TRAINING, [OF_TRAINING, {}], []),
        (OF_TRAINING, [{}, OF_TRAINING], []),
        ({"save_interval": "5"}, [OF_TRAINING, {}], []),
        ({"save_interval": "5"}, [{"save_interval": "5"}, {}], []),
        (
            {"save_interval": "6"},
            [{"save_interval": "5"}, {}],
            ["save_interval of gradients is 5, then what the hook has"],
        ),
        (OF_TRAINING | {"save_interval": "6"}, [OF_TRAINING, {"save_interval": "5"}], []),
        (
            {},
            [{"save_interval": "5"}, {"save_interval": "5"} | {"eval.save_interval": "6"}],
            ["eval.save_interval of gradients is 5, then 6"],
        ),
        (
            {"save_steps": "1"},
            [{"save_steps": "1"}, {"save_steps": "2"}, {}],
            ["save_steps of gradients is 1, then 2, then what the hook has"],
        ),
        ({}, [{"reductions": "min"}, {"reductions": "max"}, {}], ["reductions of gradients is min, then max"]),
    ],
)
def test_entries_for_a_collection_differ_where_another_step_is_saved(
    hook: dict[str, str], entries: list[dict[str, str]], said: list[str]
) -> None:
    collections = [{"CollectionName": "gradients", "CollectionParameters": each} for each in entries]
    request = {"DebugHookConfig": {"HookParameters": hook, "CollectionConfigurations": collections}}
    assert list(find_differing(request)) == said
