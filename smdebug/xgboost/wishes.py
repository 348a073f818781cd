"""Whether a step wants something, settled before it is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from smdebug.capture.saving_plan import StepPlan


class Wishes:
    """Remembers, for each plan of a step, which groups of tensors any of its collections wants."""

    def __init__(self) -> None:
        self._known: dict[tuple[StepPlan, str], bool] = {}

    def include(self, plan: StepPlan, group: str, get_names: Callable[[], Iterable[str]]) -> bool:
        """Tell whether a step with that plan wants any tensor of a group.

        Args:
            plan: what is due.
            group: a name for the tensors, one for the whole training.
            get_names: gives the names that they may have; asked once a plan.
        """
        wanted = self._known.get((plan, group))
        if wanted is None:
            wanted = any(collection.matches(name) for name in get_names() for collection in plan.due)
            self._known[plan, group] = wanted
        return wanted
