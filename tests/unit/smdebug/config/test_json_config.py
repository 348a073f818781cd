"""Tests of debughookconfig.json: cases recorded with smdebug 1.0.34, and others.

The others are those that the recorded ones leave open.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from smdebug.capture.hook import BaseHook
from smdebug.config.collection import Collection
from smdebug.config.json_config import create_hook_from_json_config, get_job_out_dir, parse_bool
from smdebug.environment import (
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_SAGEMAKER_OUTDIR,
    is_switched_on,
    parse_switch,
)
from smdebug.writing.run_writer import Worker
from tests.unit.smdebug.hooks import closing_hooks
from tests.unit.smdebug.scripts import RunScript

# As the real smdebug 1.0.34 answered; never edited by hand.
CASES = json.loads(Path(__file__).with_name("recorded_json_configs.json").read_text(encoding="utf-8"))["cases"]


class PlainHook(BaseHook):
    default_collections: ClassVar[dict[str, tuple[str, ...]]] = {
        "all": (),
        "default": (),
        "weights": ("^(?!gradient).*weight",),
        "biases": ("^(?!gradient).*bias",),
        "gradients": ("^gradient",),
        "losses": ("[Ll]oss_(?!input).*output",),
    }
    always_saved: ClassVar[tuple[str, ...]] = ("losses",)

    def get_worker(self) -> Worker:
        return Worker("worker_0", is_chief=True, count=1)


@pytest.fixture
def make_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:

    def build(config: dict[str, Any]) -> Any:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(config).replace("<TMP>", str(tmp_path)))
        return create_hook_from_json_config(PlainHook, str(path))

    with closing_hooks(build) as make:
        yield make


def describe_collection(collection: Collection) -> dict[str, Any]:
    described = collection.to_json_dict()
    del described["name"], described["tensor_names"]
    # Recorded before the hook takes the histograms of scalar collections away.
    return {**described, "save_histogram": collection._save_histogram}


def describe(hook: BaseHook, tmp_path: Path, config: dict[str, Any]) -> dict[str, Any]:
    return {
        "collections": {name: describe_collection(c) for name, c in hook.collection_manager.collections.items()},
        "dry_run": hook.dry_run,
        "include_collections": sorted(hook.include_collections),
        "include_regex": hook.include_regex,
        "out_dir_is_LocalPath": hook.out_dir == config["LocalPath"].replace("<TMP>", str(tmp_path)),
        "reduction_config": hook.reduction_config.to_json_dict(),
        "save_all": hook.save_all,
        "save_all_workers": hook.save_all_workers,
        "save_config": hook.save_config.to_json_dict(),
        "tensorboard_dir": hook.tensorboard_dir and hook.tensorboard_dir.replace(str(tmp_path), "<TMP>"),
    }


@pytest.mark.parametrize("name", CASES)
def test_recorded_case(name: str, make_hook: Callable[..., Any], tmp_path: Path) -> None:
    config, expected = CASES[name]["config"], CASES[name]["result"]
    if "raises" in expected:
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - the class is compared below
            make_hook(config)
        assert raised.type.__name__ == expected["raises"]
        assert set(expected["bases"]) <= {base.__name__ for base in raised.type.__mro__}
    else:
        if name == "dry_run_ignored":
            # The documents list the key, so it is read here.
            expected = {**expected, "dry_run": True}
        assert describe(make_hook(config), tmp_path, config) == expected


def test_of_a_collection_given_twice_the_last_entry_says_which_steps_are_saved(make_hook: Callable[..., Any]) -> None:
    first = {"include_regex": "a,b", "save_interval": "3", "reductions": "min", "save_histogram": "false"}
    second = {"include_regex": "b,c", "start_step": "2", "save_raw_tensor": True}
    hook = make_hook(
        {
            "LocalPath": "<TMP>/j",
            "HookParameters": {"save_interval": "7"},
            "CollectionConfigurations": [
                {"CollectionName": "cc", "CollectionParameters": parameters} for parameters in (first, second)
            ],
        }
    )
    collection = hook.get_collection("cc")
    assert collection.include_regex == ["a", "b", "b", "c"]
    assert collection.reduction_config.to_json_dict() == {
        "save_raw_tensor": False,
        "reductions": "min",
        "save_shape": False,
    }
    assert not collection.save_histogram
    assert collection.save_config.to_json_dict()["TRAIN"] == {
        "save_interval": 7,
        "save_steps": [],
        "start_step": 2,
        "end_step": None,
    }


def test_an_empty_regex_matches_every_name(make_hook: Callable[..., Any]) -> None:
    hook = make_hook(
        {
            "LocalPath": "<TMP>/j",
            "HookParameters": {"include_regex": ""},
            "CollectionConfigurations": [{"CollectionName": "cc", "CollectionParameters": {"include_regex": ""}}],
        }
    )
    assert set(hook.include_collections) == {"default", "cc", "losses"}
    for name in ("default", "cc"):
        assert hook.get_collection(name).matches("anything")


def test_tensorboard_in_sagemaker_is_what_its_own_config_says(
    make_hook: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"LocalPath": "<TMP>/j", "HookParameters": {"export_tensorboard": "true", "tensorboard_dir": "x"}}
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(tmp_path / "tensorboard.json"))
    assert make_hook(config).tensorboard_dir is None
    (tmp_path / "tensorboard.json").write_text('{"LocalPath": "/somewhere"}')
    assert make_hook(config).tensorboard_dir == "/somewhere"


def test_a_missing_file_and_one_that_is_not_an_object(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        create_hook_from_json_config(PlainHook, str(tmp_path / "none.json"))
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(ValueError, match="JSON object"):
        create_hook_from_json_config(PlainHook, str(tmp_path / "list.json"))


@pytest.mark.parametrize("value", [2, "TRUE", "yes", "1", []])
def test_other_flags_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="true or false"):
        parse_bool(value, default=False)


@pytest.mark.parametrize("parameters", [{"save_interval": "x"}, {"reductions": "median"}, {"save_histogram": "maybe"}])
def test_a_bad_value_is_reported_with_its_collection(parameters: Any, make_hook: Callable[..., Any]) -> None:
    entry = {"CollectionName": "losses", "CollectionParameters": parameters}
    with pytest.raises(ValueError, match=f"^CollectionParameters of losses: {next(iter(parameters))}"):
        make_hook({"LocalPath": "<TMP>/run", "CollectionConfigurations": [entry]})


def test_switches() -> None:
    assert parse_switch(" On ")
    assert not parse_switch("0")
    with pytest.raises(ValueError, match="neither on nor off"):
        parse_switch("maybe")


def test_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "debughookconfig.json"
    path.write_text("{")
    with pytest.raises(json.JSONDecodeError, match=r"debughookconfig.json is not JSON: Expecting property name"):
        create_hook_from_json_config(PlainHook, str(path))


def test_switch_that_is_neither_on_nor_off_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USE_SMDEBUG", "perhaps")
    with pytest.raises(ValueError, match="USE_SMDEBUG: 'perhaps' is neither on nor off"):
        is_switched_on()


def test_log_file_that_cannot_be_written_ends_nothing(run_script: RunScript) -> None:
    script = "from smdebug.logger import get_logger; get_logger().error('what matters')"
    ran = run_script(script, SMDEBUG_LOG_PATH="/proc/none/x.log")
    assert ran.returncode == 0
    first, second = ran.stdout.splitlines()
    assert "SMDEBUG_LOG_PATH: no log can be written to /proc/none/x.log (No such file or directory)" in first
    assert second.endswith("what matters")


def test_the_jobs_folder_is_that_of_its_hook_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    monkeypatch.setenv(CONFIG_FILE_PATH_ENV_STR, str(path))
    assert get_job_out_dir() == DEFAULT_SAGEMAKER_OUTDIR == "/opt/ml/output/tensors"
    path.write_text("{}")
    assert get_job_out_dir() == DEFAULT_SAGEMAKER_OUTDIR
    path.write_text(json.dumps({"LocalPath": "/opt/ml/elsewhere"}))
    assert get_job_out_dir() == "/opt/ml/elsewhere"
