from smdebug.config.collection import DEFAULT_XGBOOST_COLLECTIONS
from smdebug.xgboost.collection import CollectionManager


def test_a_manager_begins_with_the_collections_of_the_hook() -> None:
    manager = CollectionManager()
    assert set(manager.collections) == DEFAULT_XGBOOST_COLLECTIONS | {"metrics", "losses"}
    assert manager.get("labels").include_regex == ["^labels$"]
    assert CollectionManager(create_default=False).collections == {}
