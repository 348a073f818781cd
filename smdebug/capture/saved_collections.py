"""The collections of one hook, completed from its configuration, and the plan of what they save."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

from smdebug.capture.saving_plan import SavingPlan
from smdebug.config.collection_setup import fill_in, selects_nothing

if TYPE_CHECKING:
    from smdebug.config.collection import Collection
    from smdebug.config.collection_manager import CollectionManager
    from smdebug.config.reduction_config import ReductionConfig
    from smdebug.config.save_config import SaveConfig


class Configuration(Protocol):
    """What a hook was told to save. It is read whenever the plan is made anew, so scripts may change it."""

    collection_manager: CollectionManager
    include_collections: list[str]
    save_config: SaveConfig
    reduction_config: ReductionConfig
    default_collections: ClassVar[dict[str, tuple[str, ...]]]

    def prepare_collection(self, collection: Collection) -> None:
        """Resolve what a collection knows only in terms of the framework."""

    def refuse_collection(self, collection: Collection) -> None:
        """Hear of a collection of the script's own that selects nothing."""


class SavedCollections:
    """Keeps the plan of what is saved until a collection may have changed.

    Attributes:
        plan: what is saved at which step; None where it has to be made anew.
    """

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self.plan: SavingPlan | None = None

    @property
    def manager(self) -> CollectionManager:
        """All collections by name, to look at; whoever changes one calls `forget_plan`."""
        return self._configuration.collection_manager

    @property
    def extent(self) -> tuple[int, int]:
        """How many collections there are, and how many tensors are known to belong to them."""
        collections = self.manager.collections.values()
        return len(collections), sum(len(collection.tensor_names) for collection in collections)

    def forget_plan(self) -> None:
        """Make the plan anew when it is next asked for."""
        self.plan = None

    def get_plan(self) -> SavingPlan:
        """Return the plan; errors as `prepare` raises them."""
        if self.plan is None:
            self.prepare()
            self.plan = SavingPlan(self.manager.collections.values(), self._configuration.include_collections)
        return self.plan

    def prepare(self, *, check: bool = True) -> None:
        """Fill in what collections left to the hook, and check that each selects something.

        Raises:
            InvalidCollectionConfiguration: a collection of the script's own selects nothing.
        """
        configuration = self._configuration
        for name in configuration.include_collections:
            self.manager.get(name)
        for collection in self.manager.collections.values():
            configuration.prepare_collection(collection)
            if check and selects_nothing(collection) and collection.name not in configuration.default_collections:
                configuration.refuse_collection(collection)
            fill_in(collection, configuration.save_config, configuration.reduction_config)

    def add_tensor(self, collection_name: str, tensor_name: str) -> None:
        """Make a tensor part of a collection, which is made if it is missing."""
        collection = self.manager.get(collection_name)
        if not collection.has_tensor_name(tensor_name):
            self.forget_plan()
            collection.add_tensor_name(tensor_name)
