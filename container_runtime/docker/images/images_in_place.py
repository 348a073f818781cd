"""Images of the user's own on a Docker engine, with smdebug mounted into them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from container_runtime.docker.images.image_content import read_files
from container_runtime.images.catalogue import parse_image_name
from container_runtime.images.installation import collect_smdebug
from container_runtime.runtime import ContainerStartError, ResolvedImage
from container_runtime.spec import Mount

if TYPE_CHECKING:
    from container_runtime.images.own_images import OwnImage

TARGET = "/opt/smdebug-emulator"
"""Where a container finds the library."""

_SOURCE = Path(__file__).with_name("mounted_library")


class ImagesInPlace(NamedTuple):
    """The images of the user's own that run in place of this project's.

    Attributes:
        images: the images; the first that serves a request is used.
        library: folder in which smdebug is written for their containers. It has to be on the engine's machine at the
            same path. None if they are not to get it.
    """

    images: tuple[OwnImage, ...] = ()
    library: Path | None = None

    def resolve(self, image: str) -> ResolvedImage | None:
        """Return the image of the user's own that runs for a requested name; None if there is none."""
        requested = parse_image_name(image) if self.images else None
        for each in self.images:
            if requested is not None and each.serves(requested.repository, requested.tag):
                substitution = f"The request asks for {image}; {each.image}, which --image names, runs in its place."
                return ResolvedImage(image, each.image, substitution=substitution)
        return None

    def write_library(self) -> Mount | None:
        """Write the files that containers of these images import, and return their mount; None if they get none.

        Raises:
            ContainerStartError: the files cannot be written.
        """
        if self.library is None:
            return None
        try:
            # Not removed first: containers of an earlier emulator may have this folder mounted.
            self.library.mkdir(parents=True, exist_ok=True)
            contents = {**collect_smdebug(), "sitecustomize.py": _SOURCE / "sitecustomize.py"}
            contents["fallbacks/crc32c.py"] = _SOURCE / "crc32c.py"
            for name, content in contents.items():
                if isinstance(content, bytes):
                    _write(self.library / name, content)
                elif content.is_dir():
                    for below, data in read_files(content):
                        _write(self.library / name / below, data)
                else:
                    _write(self.library / name, content.read_bytes())
            for path in (self.library, *self.library.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
        except OSError as exc:
            raise ContainerStartError(f"{self.library} cannot be written: {exc}") from exc
        return Mount(self.library, TARGET, read_only=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file as a whole, or leave it if it has this content: containers may import it at the same time."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_bytes(content)
    partial.chmod(0o644)
    partial.replace(path)
