import json
from pathlib import Path
from typing import Any

import pytest

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig, SaveConfigMode
from smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from smdebug.mode_keys import ModeKeys


def test_reduction_config_text_form() -> None:
    config = ReductionConfig.from_dict({"reductions": " min,, abs_max ,l1_norm,abs_l2_norm,"})
    assert config.operations() == [("min", False), ("l1", False), ("max", True), ("l2", True)]
    assert config.to_json_dict() == {
        "save_raw_tensor": False,
        "reductions": "min,l1_norm,abs_max,abs_l2_norm",
        "save_shape": False,
    }
    assert ReductionConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    "arguments", [{"reductions": ["median"]}, {"norms": ["l3"]}, {"abs_norms": ["min"]}, {"save_shape": "True"}]
)
def test_reduction_config_refuses(arguments: dict[str, Any]) -> None:
    with pytest.raises(SMDebugValueError):
        ReductionConfig(**arguments)


def test_members_by_name_and_by_regex_anywhere() -> None:
    nested: Any = ["relu", ["tanh"]]
    collection = Collection("c", nested, tensor_names=["x"])
    assert all(collection.matches(name) for name in ("my_relu_0", "tanh", "x"))
    assert not collection.matches("y")
    number: Any = 5
    with pytest.raises(SMDebugTypeError):
        collection.include(number)
    with pytest.raises(SMDebugTypeError):
        collection.tensor_names = "x"
    collection.tensor_names = ["a", "a"]
    assert collection.tensor_names == {"a"}


def test_scalars_have_no_histograms() -> None:
    assert Collection("weights").save_histogram
    assert not Collection("losses", save_histogram=True).save_histogram


def test_collections_file(tmp_path: Path) -> None:
    manager = CollectionManager(create_default=True)
    manager.add(Collection("c", "x", {"b", "a"}, {"reductions": "min"}, {"TRAIN": {"save_interval": 2}}))
    manager.set_num_workers(3)
    manager.export(tmp_path, "worker_0_collections.json")
    path = tmp_path / "collections/000000000/worker_0_collections.json"
    content = json.loads(path.read_text())
    assert content["_meta"] == {"num_workers": 3}
    assert content["collections"]["c"]["tensor_names"] == ["a", "b"]
    assert content["collections"]["default"]["save_config"] is None
    assert CollectionManager.load(path) == manager
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_collections_text_that_is_refused() -> None:
    with pytest.raises(SMDebugValueError, match="other"):
        CollectionManager.load_from_string('{"collections": {}, "_meta": {}, "other": 1}')
    with pytest.raises(KeyError):
        CollectionManager.load_from_string('{"collections": {}}')


def test_manager_makes_what_is_missing_unless_configured_otherwise() -> None:
    manager = CollectionManager()
    with pytest.raises(SMDebugError, match="nothing"):
        manager.get("nothing", create=False)
    assert manager.get("it") is manager.get_collections()["it"]
    number: Any = 5
    with pytest.raises(SMDebugTypeError):
        manager.add(number)


def test_a_text_is_not_a_list_of_names() -> None:
    with pytest.raises(SMDebugTypeError, match="not 'loss'"):
        Collection("mine", tensor_names="loss")
    with pytest.raises(SMDebugValueError, match="reductions is a list of names, not the text 'min'"):
        ReductionConfig(reductions="min")


def test_a_collection_is_filled_in_from_its_hook_where_it_says_nothing() -> None:
    hooks = SaveConfig(save_interval=7)
    reductions = ReductionConfig(reductions=["min"])
    own = Collection("own", reduction_config={"reductions": "max"}, save_config={"TRAIN": {"save_interval": 2}})
    plain, scalars = Collection("plain"), Collection("losses", reduction_config={"reductions": "max"})
    for collection in (own, plain, scalars):
        collection.fill_in(hooks, reductions)
        assert collection.save_config is not None
        assert collection.save_config.get_save_config(ModeKeys.EVAL).save_interval == 7
    assert own.save_config is not None
    assert own.save_config.get_save_config(ModeKeys.TRAIN).save_interval == 2
    assert own.reduction_config == ReductionConfig(reductions=["max"])
    assert plain.reduction_config == reductions
    assert scalars.reduction_config == ReductionConfig(save_raw_tensor=True)


def test_names_come_and_go() -> None:
    collection = Collection("c", tensor_names=["a"])
    assert not collection.selects_nothing()
    collection.add_tensor_name("b")
    collection.add_tensor_name(["c", "d"])
    collection.remove_tensor_name("a")
    collection.remove_tensor_name("never there")
    assert collection.tensor_names == {"b", "c", "d"}
    assert collection.has_tensor_name("b")
    assert not Collection("c", "b").has_tensor_name("b")
    collection.tensor_names = None
    assert collection.selects_nothing()
    assert not Collection("c", "b").selects_nothing()


def test_json_forms_come_back() -> None:
    collection = Collection("c", ["x"], ["a"], {"reductions": "min"}, {"TRAIN": {"end_step": 4}}, save_histogram=False)
    again = Collection.from_json(collection.to_json())
    assert (again, again.save_histogram, hash(again)) == (collection, False, hash(collection))
    assert Collection.from_dict({"name": "c"}) == Collection("c")
    assert collection != Collection("c")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": ""}, SMDebugValueError),
        ({"name": None}, SMDebugValueError),
        ({"name": "c", "include_regex": "("}, SMDebugValueError),
        ({"name": "c", "reduction_config": "min"}, SMDebugTypeError),
        ({"name": "c", "reduction_config": 5}, SMDebugTypeError),
        ({"name": "c", "save_config": 5}, SMDebugTypeError),
    ],
)
def test_collections_that_are_refused(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        Collection(**arguments)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (SaveConfig, SMDebugTypeError),
        (SaveConfigMode, SMDebugTypeError),
        (ReductionConfig, SMDebugValueError),
        (Collection, SMDebugValueError),
    ],
)
def test_what_is_not_a_dict_is_refused(config: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"{config.__name__}.from_dict takes a dict.*, not None"):
        config.from_dict(None)


def test_a_manager_finds_the_collections_of_a_tensor() -> None:
    manager = CollectionManager({"a": Collection("a", "x")})
    manager.create_collection("b")
    manager.get("b").add_tensor_name("x1")
    found = manager.collections.values()
    assert [collection.name for collection in found if collection.matches("x1")] == ["a", "b"]
    assert [collection.name for collection in found if collection.matches("x2")] == ["a"]
    assert list(manager.collections) == ["a", "b"]


def test_a_name_that_is_taken_keeps_its_collection_and_an_object_replaces_it() -> None:
    manager = CollectionManager({"a": Collection("a", "x")})
    manager.create_collection("a")
    manager.add("a")
    assert manager.get("a").matches("x2")
    manager.add(arg=Collection("a", "y"))
    assert not manager.get("a").matches("x2")


def test_a_manager_counts_the_workers_and_keeps_what_else_is_said_of_a_run() -> None:
    manager = CollectionManager()
    assert manager.get_num_workers() == 1
    manager.update_meta({"more": "said"})
    manager.set_num_workers(4)
    again = CollectionManager.load_from_string(json.dumps(manager.to_json_dict()))
    assert again.get_num_workers() == 4
    assert again.to_json_dict()["_meta"] == {"more": "said", "num_workers": 4}
    assert again == manager
    assert again != CollectionManager()


def test_arguments_have_the_names_that_scripts_pass() -> None:
    collection = Collection("c")
    collection.include(t=["x"])
    collection.add_tensor_name(tname="a")
    assert collection.has_tensor_name(tname="a")
    collection.remove_tensor_name(tname="a")
    assert Collection.from_json(json_str=collection.to_json()) == Collection("c", "x")
    reductions, steps = ReductionConfig(reductions=["min"]), SaveConfig(save_interval=3)
    assert ReductionConfig.from_json(json_str=reductions.to_json()) == reductions
    assert SaveConfig.from_json(json_str=steps.to_json()) == SaveConfig.parse(obj=steps)
    train = steps.mode_save_configs[ModeKeys.TRAIN]
    assert train is not None
    assert train.should_save_step(step_num=6)
