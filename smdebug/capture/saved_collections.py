"""Collections of one hook, completed from its configuration and planned."""

from collections.abc import Iterable, Mapping

from smdebug.capture.framework import Framework
from smdebug.capture.saving_plan import SavingPlan
from smdebug.config.collection import CollectionKeys
from smdebug.config.collection_manager import CollectionManager
from smdebug.exceptions import InvalidCollectionConfiguration
from smdebug.job_warnings import HOOK_SAVED_NOTHING, warn_user
from smdebug.mode_keys import ModeKeys


class SavedCollections:
    """Caches the saving plan until a collection may have changed.

    Attributes:
        plan: what is saved at which step; None if it has to be recomputed.
        included: include_collections as they were for the plan.
        refused: whether the training was refused its first step, for a collection that selects nothing.
    """

    def __init__(self, framework: Framework) -> None:
        """Initialize with the hook, whose collections these are."""
        self._framework = framework
        self.plan: SavingPlan | None = None
        self.included: tuple[str, ...] = ()
        self.refused = False
        self._is_checked = False
        # Named in include_collections, but never configured by the script.
        self._only_named: set[str] = set()
        self._warned: set[str] = set()

    @property
    def manager(self) -> CollectionManager:
        """All collections by name, for reading; call `forget_plan` after changing one."""
        return self._framework.collection_manager

    @property
    def unused(self) -> list[str]:
        """Names in include_collections that stand for nothing, as upstream has no collections for them."""
        collections = self.manager.collections
        return [name for name in self._only_named if name in collections and collections[name].selects_nothing()]

    @property
    def extent(self) -> tuple[int, int]:
        """The number of collections, and the number of tensors known to belong to them."""
        collections = self.manager.collections.values()
        return len(collections), sum(len(collection.tensor_names) for collection in collections)

    def forget_plan(self) -> None:
        """Drop the cached plan, so that the next `get_plan` recomputes it."""
        self.plan = None

    def get_plan(self) -> SavingPlan:
        """Return the plan, computed if necessary; raises the errors of `prepare`."""
        # Scripts may append to include_collections at any time.
        if self.plan is None or self.included != tuple(self._framework.include_collections):
            self.prepare()
            self.plan = SavingPlan(self.manager.collections.values(), self._framework.include_collections)
            self.included = tuple(self._framework.include_collections)
        return self.plan

    def prepare(self, *, check: bool = True) -> None:
        """Complete the collections with the hook's configs, and check that each selects something.

        As in upstream smdebug, the first check refuses an empty collection that the script or its configuration made.
        A collection that is only named in include_collections, or made later, causes a warning.

        Raises:
            InvalidCollectionConfiguration: a collection made by the script selects nothing.
        """
        framework = self._framework
        self._only_named |= set(framework.include_collections) - self.manager.collections.keys()
        for name in framework.include_collections:
            self.manager.get(name)
        for collection in self.manager.collections.values():
            framework.prepare_collection(collection)
            if check and collection.selects_nothing() and collection.name not in framework.default_collections:
                self._judge_empty(collection.name)
            collection.fill_in(framework.save_config, framework.reduction_config)
        self._is_checked = self._is_checked or check

    def _judge_empty(self, name: str) -> None:
        if name in self._warned:
            return
        if not self._is_checked and name not in self._only_named:
            try:
                self._framework.refuse_collection(self.manager.get(name))
            except InvalidCollectionConfiguration:
                self.refused = True
                raise
        else:
            warn_user(
                HOOK_SAVED_NOTHING,
                "Collection %s saves nothing: it has neither include_regex nor tensor names. Call "
                'hook.get_collection("%s").include("a regex of names") before the training.',
                name,
                name,
            )
        self._warned.add(name)

    def warn_of_unmatched(self, mode_steps: Mapping[ModeKeys, int]) -> None:
        """Warn of each collection that was due and has regexes of the script or its configuration, but no tensor.

        Args:
            mode_steps: the last step of each mode. GLOBAL counts only without others: it has the steps of all.
        """
        framework, included = self._framework, set(self._framework.include_collections)
        last = {mode: step for mode, step in mode_steps.items() if step >= 0}
        if len(last) > 1:
            last.pop(ModeKeys.GLOBAL, None)
        for name, collection in self.manager.collections.items():
            is_saved = name in included or CollectionKeys.ALL in included
            built_in = framework.default_collections.get(name, ())
            regexes = [regex for regex in collection.include_regex if regex not in built_in]
            if not is_saved or not regexes or collection.tensor_names:
                continue
            config = collection.save_config or framework.save_config
            first = {mode: config.get_save_config(mode).get_next_step(0) for mode in last}
            was_due = any(step is not None and step <= last[mode] for mode, step in first.items())
            if was_due:
                warn_user(
                    HOOK_SAVED_NOTHING,
                    "Collection %s saved nothing: its include_regex %s matches no tensor's name. A job with "
                    "save_all shows the names.",
                    name,
                    ", ".join(regexes),
                )

    def include_names(self, collection_name: str, tensor_names: Iterable[str]) -> None:
        """Add tensors to a built-in collection by name, because no regex identifies them."""
        self.manager.get(collection_name).add_tensor_name(list(tensor_names))

    def add_tensor(self, collection_name: str, tensor_name: str) -> None:
        """Add a tensor to a collection, which is created if it is missing."""
        collection = self.manager.get(collection_name)
        if not collection.has_tensor_name(tensor_name):
            self.forget_plan()
            collection.add_tensor_name(tensor_name)
