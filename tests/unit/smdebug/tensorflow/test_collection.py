from smdebug.config.collection import DEFAULT_TF_COLLECTIONS
from smdebug.tensorflow.collection import Collection, CollectionManager


def test_a_manager_begins_with_the_collections_of_the_keras_hook() -> None:
    manager = CollectionManager()
    assert set(manager.collections) == DEFAULT_TF_COLLECTIONS
    assert manager.get("gradients").include_regex == ["^gradient"]
    assert isinstance(manager.get("layers"), Collection)
    assert CollectionManager(create_default=False).collections == {}
