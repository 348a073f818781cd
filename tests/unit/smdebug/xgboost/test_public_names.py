"""Tests of smdebug.xgboost's public names, for existing scripts."""

import importlib
import inspect

import pytest

import smdebug.xgboost as smd

NAMES = {
    "smdebug.xgboost": "Collection CollectionKeys Hook SaveConfig SaveConfigMode create_trial del_hook get_hook modes "
    "set_hook",
    "smdebug.xgboost.hook": "Collection CollectionKeys CollectionManager Hook",
    "smdebug.xgboost.singleton_utils": "del_hook get_hook set_hook",
}


@pytest.mark.parametrize("module", NAMES)
def test_names(module: str) -> None:
    alias = importlib.import_module(module)
    assert sorted(alias.__all__) == sorted(NAMES[module].split())
    for name in alias.__all__:
        found = getattr(alias, name)
        assert not (inspect.isclass(found) or inspect.isroutine(found)) or (inspect.getdoc(found) or "").strip()


def test_there_is_no_reduction_config() -> None:
    with pytest.raises(AttributeError):
        _ = smd.ReductionConfig


def test_arguments_of_a_hook() -> None:
    assert " ".join(inspect.signature(smd.Hook).parameters) == (
        "out_dir export_tensorboard tensorboard_dir dry_run reduction_config save_config include_regex "
        "include_collections save_all include_workers hyperparameters train_data validation_data"
    )
    assert list(inspect.signature(smd.get_hook).parameters) == ["json_config_path"]
