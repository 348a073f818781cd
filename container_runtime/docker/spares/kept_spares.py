"""Spare containers of one shape, and how many there should be."""

from dataclasses import dataclass, field

from container_runtime.docker.spares.spare import Spare
from container_runtime.images.catalogue import ImageDefinition


@dataclass(slots=True)
class KeptSpares:
    """The spare containers of one shape.

    Attributes:
        definition: their image.
        until: monotonic time at which they are removed; infinite for never.
        wanted: how many there should be.
        asked_ahead: how many are kept for as long as the back end is open.
        is_used: whether a container has asked for one of these.
        started: monotonic times of the last starts.
        spares: those that wait, and those that do their imports.
        ready: those that wait.
        waiting: the containers that wait for one of these, the first to come first.
    """

    definition: ImageDefinition
    until: float = 0.0
    wanted: int = 1
    asked_ahead: int = 0
    is_used: bool = False
    started: list[float] = field(default_factory=list)
    spares: list[Spare] = field(default_factory=list)
    ready: list[Spare] = field(default_factory=list)
    waiting: list[object] = field(default_factory=list)
