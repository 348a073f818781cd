"""Collection manager: all collections of a run, and their file."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from smdebug.config.collection import Collection, CollectionKeys
from smdebug.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from smdebug.format.locations import COLLECTIONS_DIR
from smdebug.storage.output import write_whole_file
from smdebug.storage.s3 import get_path_text

COLLECTIONS_KEY = "collections"
META_KEY = "_meta"
NUM_WORKERS_KEY = "num_workers"

# Collections that every framework with parameters has from the start, with their regexes.
BIASES_REGEX = "^(?!gradient).*bias"
PARAMETER_COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    CollectionKeys.ALL: (),
    CollectionKeys.DEFAULT: (),
    CollectionKeys.WEIGHTS: ("^(?!gradient).*weight",),
    CollectionKeys.BIASES: (BIASES_REGEX,),
    CollectionKeys.GRADIENTS: ("^gradient",),
}


class CollectionManager:
    """Collections by name, with the number of workers that write the run."""

    # Frameworks override it with a class that accepts their modules or layers.
    collection_class: type[Collection] = Collection
    # The collections of `create_default`, with their regexes.
    default_collections: ClassVar[Mapping[str, tuple[str, ...]]] = {CollectionKeys.DEFAULT: ()}

    def __init__(self, collections: Mapping[str, Collection] | None = None, create_default: bool = False) -> None:
        """Initialize with `collections`; `create_default` adds those of `default_collections`."""
        self.collections: dict[str, Collection] = dict(collections or {})
        self._meta: dict[str, Any] = {NUM_WORKERS_KEY: 1}
        if create_default:
            for name, patterns in self.default_collections.items():
                self.get(name).include(patterns)

    def create_collection(self, name: str, cls: type[Collection] | None = None) -> None:
        """Add an empty collection named `name`; an existing one stays as it is."""
        if name not in self.collections:
            self.collections[name] = (cls or self.collection_class)(name)

    def add(self, arg: Collection | str) -> None:
        """Add a collection, replacing one of its name, or an empty collection by a name that is not taken yet.

        Raises:
            SMDebugTypeError: the argument is neither a collection nor a name.
        """
        if isinstance(arg, str):
            self.create_collection(arg)
        elif isinstance(arg, Collection):
            self.collections[arg.name] = arg
        else:
            raise SMDebugTypeError(f"A collection is added by name or as a Collection, not {arg!r}.")

    def get(self, name: str, create: bool = True) -> Collection:
        """Return a collection, created empty if it is missing.

        Raises:
            SMDebugError: the collection is missing, and `create` is False.
        """
        if name not in self.collections:
            if not create:
                raise SMDebugError(f"There is no collection {name!r}; known: {', '.join(sorted(self.collections))}.")
            self.create_collection(name)
        return self.collections[name]

    def get_collections(self) -> dict[str, Collection]:
        """Return all collections by name."""
        return self.collections

    def update_meta(self, meta: Mapping[str, Any]) -> None:
        """Add metadata of the run to the `_meta` key of the collections file."""
        self._meta.update(meta)

    def get_num_workers(self) -> int:
        """Return the number of workers that write this run."""
        return int(self._meta[NUM_WORKERS_KEY])

    def set_num_workers(self, num_workers: int) -> None:
        """Set the number of workers that write this run."""
        self._meta[NUM_WORKERS_KEY] = num_workers

    def to_json_dict(self) -> dict[str, Any]:
        """Return the content of a collections file."""
        return {
            COLLECTIONS_KEY: {name: collection.to_json_dict() for name, collection in self.collections.items()},
            META_KEY: self._meta,
        }

    def export(self, out_dir: str | os.PathLike[str], filename: str) -> None:
        """Write `<out_dir>/collections/000000000/<filename>` atomically: under a temporary name, then renamed."""
        write_whole_file(
            f"{get_path_text(out_dir)}/{COLLECTIONS_DIR}/{filename}", [json.dumps(self.to_json_dict()).encode()]
        )

    @classmethod
    def load(
        cls, filename: str | os.PathLike[str], collection_class: type[Collection] | None = None
    ) -> "CollectionManager":
        """Load a local collections file; raises the errors of `load_from_string`."""
        return cls.load_from_string(Path(filename).read_text(encoding="utf-8"), collection_class)

    @classmethod
    def load_from_string(cls, s: str, collection_class: type[Collection] | None = None) -> "CollectionManager":
        """Load the text of a collections file.

        Raises:
            SMDebugValueError: there are top-level keys other than `collections` and `_meta`, or a reduction is unknown.
            KeyError: `_meta` is missing.
        """
        content = json.loads(s)
        unknown = set(content) - {COLLECTIONS_KEY, META_KEY}
        if unknown:
            raise SMDebugValueError(f"A collections file holds no {', '.join(sorted(unknown))}.")
        kind = collection_class or Collection
        loaded = cls()
        loaded.collections = {
            name: kind.from_dict({"name": name, **params}) for name, params in content.get(COLLECTIONS_KEY, {}).items()
        }
        loaded._meta = dict(content[META_KEY])
        return loaded

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CollectionManager) and self.to_json_dict() == other.to_json_dict()

    __hash__ = None  # type: ignore[assignment]


class FrameworkCollectionManager(CollectionManager):
    """Collections of one framework's run; `default_collections` are those that its hook has from the start."""

    def __init__(self, create_default: bool = True) -> None:
        """Initialize with the built-in collections, or empty."""
        super().__init__(create_default=create_default)
