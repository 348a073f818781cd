"""What a hook makes of the collections it is given, before it saves anything."""

from collections.abc import Iterable

from smdebug.config.collection import Collection
from smdebug.config.collection_keys import NON_REDUCTION_COLLECTIONS, CollectionKeys
from smdebug.config.collection_manager import CollectionManager
from smdebug.config.reduction_config import ReductionConfig
from smdebug.config.save_config import SaveConfig


def include_tensors(
    manager: CollectionManager,
    include_collections: Iterable[str],
    always_saved: Iterable[str],
    *,
    save_all: bool,
    include_regex: Iterable[str],
) -> list[str]:
    """Return the names of the collections to save; `all` and `default` get what is asked for without a collection."""
    names = dict.fromkeys(include_collections)
    if save_all:
        manager.get(CollectionKeys.ALL).include(".*")
        names[CollectionKeys.ALL] = None
    patterns = list(include_regex)
    if patterns:
        manager.get(CollectionKeys.DEFAULT).include(patterns)
        names[CollectionKeys.DEFAULT] = None
    return list(names | dict.fromkeys(always_saved))


def selects_nothing(collection: Collection) -> bool:
    """Tell whether a collection has neither regex nor names."""
    return not collection.include_regex and not collection.tensor_names


def fill_in(collection: Collection, save_config: SaveConfig, reduction_config: ReductionConfig) -> None:
    """Give a collection the hook's configs where it has none of its own; numbers are always saved as they are."""
    own = collection.save_config or SaveConfig({})
    collection.save_config = own.filled_from(save_config)
    if collection.name in NON_REDUCTION_COLLECTIONS:
        collection.reduction_config = ReductionConfig(save_raw_tensor=True)
    elif collection.reduction_config is None:
        collection.reduction_config = reduction_config
