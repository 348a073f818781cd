"""Saving plan of a step, computed once for each set of due collections."""

import re
import sys
from collections.abc import Iterable

from smdebug.config.collection import NON_REDUCTION_COLLECTIONS, TRAIN_ONLY_COLLECTIONS, Collection, CollectionKeys
from smdebug.config.save_config import SaveConfigMode
from smdebug.mode_keys import ModeKeys
from smdebug.writing.selected_tensor import Selection

# How many numbers a regex is tried with for names that are not known yet: few where it holds no digit.
_SAMPLES, _SAMPLES_OF_DIGITS = 12, 100
_NUMBER = re.compile(r"[0-9]{1,6}")

_NO_END = sys.maxsize


class StepPlan:
    """Determines what is saved of each tensor, for one set of due collections."""

    def __init__(self, due: Iterable[Collection], saved: Iterable[Collection]) -> None:
        """Initialize with the collections due at a step, and with all that this hook saves at any step."""
        self.due = tuple(due)
        self._saved = tuple(saved)
        self._selections: dict[str, Selection | None] = {}
        self._selections_of_one: dict[tuple[str, str], Selection | None] = {}
        self._prefixes: dict[str, bool] = {}
        self._samples = [_list_samples(collection) for collection in self.due]

    def has_collection(self, name: str) -> bool:
        """Return whether the collection of this name is due."""
        return any(collection.name == name for collection in self.due)

    def select(self, name: str) -> Selection | None:
        """Return what is saved of the tensor at a step with this plan; None if nothing is saved."""
        try:
            return self._selections[name]
        except KeyError:
            pass
        selection = self.combine(collection for collection in self.due if collection.matches(name))
        self._selections[name] = selection
        if selection:
            for collection in self._saved:
                if collection in selection.collections or collection.matches(name):
                    collection.add_tensor_name(name)
        return selection

    def select_for(self, name: str, collection_name: str) -> Selection | None:
        """Return what one collection alone saves of the tensor, which becomes part of it; None if it is not due."""
        key = (name, collection_name)
        if key not in self._selections_of_one:
            selection = self.combine(collection for collection in self.due if collection.name == collection_name)
            self._selections_of_one[key] = selection
            for collection in selection.collections if selection else ():
                collection.add_tensor_name(name)
        return self._selections_of_one[key]

    @staticmethod
    def combine(collections: Iterable[Collection]) -> Selection | None:
        """Merge what the collections save of a tensor: raw values if any wants them, and each reduction once."""
        found = tuple(collections)
        if not found:
            return None
        raw = shape = False
        operations: dict[tuple[str, bool], None] = {}
        for collection in found:
            config = collection.reduction_config
            if config is None or collection.name in NON_REDUCTION_COLLECTIONS:
                raw = True
                continue
            raw = raw or config.save_raw_tensor
            shape = shape or config.save_shape
            operations.update(dict.fromkeys(config.operations()))
        return Selection(raw, shape, tuple(operations), found)

    def wants_numbered(self, prefix: str) -> bool:
        """Return whether a tensor whose name is `prefix` and a number may be saved at a step with this plan."""
        wanted = self._prefixes.get(prefix)
        if wanted is None:
            wanted = any(
                collection.matches(f"{prefix}{number}")
                for collection, numbers in zip(self.due, self._samples, strict=True)
                for number in numbers
            ) or any(name.startswith(prefix) for collection in self.due for name in collection.tensor_names)
            self._prefixes[prefix] = wanted
        return wanted


def _list_samples(collection: Collection) -> list[int]:
    """Return the numbers by which the collection's regexes may tell tensors apart that are numbered."""
    text = " ".join(collection.include_regex)
    named = {int(digits) for digits in _NUMBER.findall(text)}
    return sorted({*range(_SAMPLES_OF_DIGITS if named or r"\d" in text else _SAMPLES), *named})


class SavingPlan:
    """Determines which collections are due at a step, and caches a plan for each set of due collections."""

    def __init__(self, collections: Iterable[Collection], include_collections: Iterable[str]) -> None:
        """Initialize with prepared collections and the names of those to save; the name `all` includes every one."""
        included = set(include_collections)
        self.saved = tuple(
            collection for collection in collections if CollectionKeys.ALL in included or collection.name in included
        )
        # Collections with equal configs are evaluated together.
        self._groups: dict[ModeKeys, list[tuple[SaveConfigMode, list[Collection]]]] = {}
        for mode in ModeKeys:
            groups = self._groups[mode] = []
            for collection in self.saved:
                if mode in (ModeKeys.EVAL, ModeKeys.PREDICT) and collection.name in TRAIN_ONLY_COLLECTIONS:
                    continue
                assert collection.save_config
                config = collection.save_config.get_save_config(mode)
                for known, members in groups:
                    if known == config:
                        members.append(collection)
                        break
                else:
                    groups.append((config, [collection]))
        self._plans: dict[tuple[str, ...], StepPlan] = {}

    def count_idle_steps(self, mode: ModeKeys, mode_step: int) -> int:
        """Return the number of steps, from `mode_step` on, until something is due; a very large number if never."""
        found = [config.get_next_step(mode_step) for config, _ in self._groups[mode]]
        return min((step for step in found if step is not None), default=_NO_END) - mode_step

    def get_step_plan(self, mode: ModeKeys, mode_step: int) -> StepPlan | None:
        """Return the plan of a step; None if nothing is due."""
        due: list[Collection] = []
        for config, members in self._groups[mode]:
            if config.should_save_step(mode_step):
                due += members
        if not due:
            return None
        key = tuple(collection.name for collection in due)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = StepPlan(due, self.saved)
        return plan
