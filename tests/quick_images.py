"""Images whose spare containers and warm interpreters import next to nothing."""

from collections.abc import Iterator
from dataclasses import replace

from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition

IMPORTED = "colorsys"
"""The module that they import, and that nothing else imports."""


class QuickToImport(ImageCatalogue):
    """This project's images, for tests in which it does not matter what is imported."""

    def __iter__(self) -> Iterator[ImageDefinition]:
        return (
            replace(each, warm_modules=(IMPORTED,), warm_hook="") if each.warm_modules else each
            for each in super().__iter__()
        )
