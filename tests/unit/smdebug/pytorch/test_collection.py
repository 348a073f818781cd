from torch import nn

from smdebug.pytorch.collection import Collection, CollectionManager
from smdebug.pytorch.hook import Hook


def test_a_manager_begins_with_the_collections_of_the_hook() -> None:
    manager = CollectionManager()
    assert set(manager.collections) == {"all", "default", "weights", "biases", "gradients", "losses"}
    assert {name: tuple(found.include_regex) for name, found in manager.collections.items()} == Hook.default_collections
    assert isinstance(manager.get("weights"), Collection)
    assert CollectionManager(create_default=False).collections == {}


def test_a_loaded_manager_holds_what_its_text_says() -> None:
    assert CollectionManager.load_from_string('{"collections": {}, "_meta": {"num_workers": 1}}').collections == {}


def test_a_collection_shows_its_modules() -> None:
    layer, collection = nn.Linear(1, 1), Collection("mine")
    collection.add_module_tensors(layer)
    assert collection.modules == {layer: (False, True)}
    collection.add_module_tensors(layer, inputs=True)
    assert collection.modules == {layer: (True, True)}
