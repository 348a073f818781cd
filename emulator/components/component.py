"""Components: what each needs, and their start and stop in order."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TypeVar

C = TypeVar("C", bound="Component")

logger = logging.getLogger(__name__)


class Component:
    """A part of the emulator that is started and stopped.

    A subclass takes the components that it needs as arguments and passes them on to this constructor. In ``start``, it
    sets the attributes that it offers to others. Heavy imports belong in ``start``, too.

    Attributes:
        needs: the components that are started before this one, and stopped after it.
        closers: functions that ``stop`` calls, the latest first. ``start`` adds one as soon as it has acquired a
            resource, so that ``stop`` releases everything that a failed start had acquired.
    """

    def __init__(self, *needs: Component) -> None:
        self.needs = needs
        self.closers = ExitStack()

    @property
    def name(self) -> str:
        """The component's name in messages."""
        return type(self).__name__

    def start(self) -> None:
        """Start the component. The components in ``needs`` are already started.

        Raises:
            StartupError: the text is one line that says what to do.
        """

    def stop(self) -> None:
        """Release what ``start`` acquired, even if it failed. Idempotent."""
        self.closers.close()


class ComponentList:
    """Components that start in the order in which they were added, and stop in reverse order."""

    def __init__(self) -> None:
        self._components: list[Component] = []
        self._started: list[Component] = []

    def add(self, component: C) -> C:
        """Add a component and return it; start nothing.

        Raises:
            ValueError: it needs one that was not added before it, or was itself added before.
        """
        if component in self._components:
            raise ValueError(f"{component.name} is listed twice.")
        if missing := [each.name for each in component.needs if each not in self._components]:
            raise ValueError(f"{component.name} needs {', '.join(missing)} before it in the list of components.")
        self._components.append(component)
        return component

    def start(self) -> None:
        """Start every component; if one fails, stop it and those before it, and raise its error.

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
        """Stop every started component. If one fails, log it and continue with the others. Idempotent."""
        while self._started:
            component = self._started.pop()
            try:
                component.stop()
            except Exception:  # whatever it is, the others have processes, ports and files to release
                logger.exception("%s could not be stopped", component.name)
