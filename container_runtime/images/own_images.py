"""Images of the user's own in place of this project's (``start --image``)."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from container_runtime.images.catalogue import ImageCatalogue, parse_image_name, parse_version
from container_runtime.runtime import ContainerRuntimeError

_WANTED = "give NAME=IMAGE or NAME:VERSION=IMAGE, such as pytorch-training:2.3=my/dlc:2.3, or @FILE with such lines"


class OwnImage(NamedTuple):
    """An image of the user's own.

    Attributes:
        repository: the requested repository name in whose place it runs.
        version: the numbers with which a requested version has to begin; empty for any version.
        image: its name on the engine, or in a registry.
    """

    repository: str
    version: tuple[int, ...]
    image: str

    def serves(self, repository: str, tag: str | None) -> bool:
        """Return whether it runs for a requested repository and tag."""
        return repository == self.repository and parse_version(tag)[: len(self.version)] == self.version


def parse_own_image(text: str) -> OwnImage:
    """Parse ``NAME=IMAGE`` or ``NAME:VERSION=IMAGE``.

    Raises:
        ContainerRuntimeError: the text is of another form.
    """
    name, equals, image = (part.strip() for part in text.partition("="))
    repository, colon, tag = name.partition(":")
    version = parse_version(tag)
    if not equals or not repository or not image or bool(colon) != bool(version):
        raise ContainerRuntimeError(f"--image {text}: {_WANTED}.")
    parse_image_name(image)
    return OwnImage(repository, version, image)


def read_own_images(given: Iterable[str]) -> tuple[OwnImage, ...]:
    """Return the images that the values of ``--image`` name, those with the longest version first.

    Raises:
        ContainerRuntimeError: a value is invalid, or its file cannot be read.
    """
    found = [parse_own_image(line) for text in given for line in _read_lines(text)]
    names = [(each.repository, each.version) for each in found]
    if doubled := next((each for each in names if names.count(each) > 1), None):
        version = ".".join(map(str, doubled[1]))
        raise ContainerRuntimeError(f"--image names two images for {doubled[0]}{version and ':'}{version}: give one.")
    return tuple(sorted(found, key=lambda each: -len(each.version)))


def check_repositories(images: Sequence[OwnImage], catalogue: ImageCatalogue) -> None:
    """Check that each image replaces one of this project.

    Raises:
        ContainerRuntimeError: it does not.
    """
    for each in images:
        if each.repository not in catalogue.repositories:
            raise ContainerRuntimeError(
                f"--image {each.repository}={each.image}: no image of that name is built here, so jobs name theirs "
                f"directly. There are {', '.join(catalogue.repositories)}."
            )


def _read_lines(text: str) -> Iterator[str]:
    if not text.startswith("@"):
        yield text
        return
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        raise ContainerRuntimeError(f"--image {text}: the file cannot be read: {exc}") from exc
    yield from (line for line in map(str.strip, lines) if line and not line.startswith("#"))
