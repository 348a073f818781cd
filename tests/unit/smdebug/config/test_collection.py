import json
from pathlib import Path
from typing import Any

import pytest

from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.reduction_config import ReductionConfig
from smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError


def test_reduction_config_text_form() -> None:
    config = ReductionConfig.from_dict({"reductions": " min, abs_max ,l1_norm,abs_l2_norm"})
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


def test_manager_makes_what_is_missing_unless_told_not_to() -> None:
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
