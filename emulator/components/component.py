"""Components: what each needs, and their start and stop in order."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

logger = logging.getLogger(__name__)


class Component:
    """A part of the emulator that is started and stopped.

    A subclass takes the components that it needs as arguments, passes them on to this constructor, and sets what it
    offers to others as attributes in ``start``. A heavy import belongs into ``start``, too.

    Attributes:
        needs: the components that have to be started before this one, and stopped after it.
        closers: what ``stop`` gives back, the latest first. ``start`` adds each thing as soon as it has taken it, so
            that ``stop`` gives back all that a failed start had taken.
    """

    def __init__(self, *needs: Component) -> None:
        self.needs = needs
        self.closers = ExitStack()

    @property
    def name(self) -> str:
        """The name in messages."""
        return type(self).__name__

    def start(self) -> None:
        """Start. Components of ``needs`` are started.

        Raises:
            StartupError: the text is one line that says what to do.
        """

    def stop(self) -> None:
        """Give back what ``start`` took, also where it failed. Idempotent."""
        self.closers.close()


class ComponentList:
    """Components that start in their order and stop in the reverse one."""

    def __init__(self, components: Sequence[Component]) -> None:
        """Check the order; start nothing.

        Raises:
            ValueError: a component needs one that does not come before it, or is listed twice.
        """
        before: list[Component] = []
        for component in components:
            if component in before:
                raise ValueError(f"{component.name} is listed twice.")
            if missing := [each.name for each in component.needs if each not in before]:
                raise ValueError(f"{component.name} needs {', '.join(missing)} before it in the list of components.")
            before.append(component)
        self._components = tuple(components)
        self._started: list[Component] = []

    def start(self) -> None:
        """Start every component; where one fails, stop it and those before it, and raise its error.

        Raises:
            StartupError: see ``Component.start``.
        """
        try:
            for component in self._components:
                self._started.append(component)
                component.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop every component that was started. One that fails is logged and does not keep the others. Idempotent."""
        while self._started:
            component = self._started.pop()
            try:
                component.stop()
            except Exception:  # whatever it is, the others have processes, ports and files to give back
                logger.exception("%s could not be stopped", component.name)
