"""Images on the engine: lookup by requested name, and their configuration."""

import base64
import io
import json
import logging
import stat
import tarfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

import docker
import docker.errors
import docker.utils

from container_runtime.docker.border import (
    REQUEST_SECONDS,
    build_url,
    raise_for_status,
    read_transfer,
    translated,
)
from container_runtime.docker.images.images_in_place import ImagesInPlace
from container_runtime.images.catalogue import (
    IMAGE_LABEL,
    ImageCatalogue,
    ImageDefinition,
    local_name,
    parse_image_name,
)
from container_runtime.runtime import (
    ContainerRuntimeError,
    ContainerStartError,
    ImageNotFoundError,
    ResolvedImage,
    VersionRefusedError,
    WheelhouseError,
)
from container_runtime.spec import ContainerSpec, Mount

logger = logging.getLogger(__name__)

RECHECK_SECONDS = 1.0
"""Time for which a name is not looked up again: a start resolves it several times."""
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def missing_images(api: docker.APIClient, catalogue: ImageCatalogue) -> list[str]:
    """Return the names of this project's images that the engine does not have, except for images built on demand.

    Raises:
        EngineUnavailableError: no engine answers.
    """
    names = [local_name(definition) for definition in catalogue.select(())]
    with translated("list images"):
        # One request: an engine takes several milliseconds for each.
        found = [tag for image in api.images(filters={"reference": names}) for tag in image["RepoTags"] or ()]
    # Podman says where an image without a registry is from: localhost/NAME.
    return [name for name in names if not any(tag == name or tag.endswith(f"/{name}") for tag in found)]


class LocalImage:
    """A resolved image with its configuration, which is cached while its name means the same image."""

    def __init__(self, resolved: ResolvedImage, inspected: Mapping[str, Any], library: Mount | None = None) -> None:
        config = inspected.get("Config") or {}
        environment = dict(entry.partition("=")[::2] for entry in config.get("Env") or ())
        self.resolved = resolved
        self.id: str = inspected["Id"]
        self.library = library
        self.is_ours = IMAGE_LABEL in (config.get("Labels") or {})
        self.environment_settings: str | None = None
        self.environment = environment
        self.path: str = environment.get("PATH", _DEFAULT_PATH)
        self.entrypoint = tuple(config.get("Entrypoint") or ())
        self.command = tuple(config.get("Cmd") or ())
        self.working_folder: str = config.get("WorkingDir") or "/"
        self.programs: set[tuple[str, str]] = set()
        # Pairs of an image id and the target of a mount below which that image has no files.
        self.absent: set[tuple[str, str]] = set()
        self.checked = time.monotonic()

    def find_argv(self, spec: ContainerSpec) -> tuple[str, ...]:
        """Return the program that a container runs, with its arguments."""
        entrypoint = self.entrypoint if spec.entrypoint is None else spec.entrypoint
        # An entry point in the spec drops the image's default command, as `docker run --entrypoint` does.
        return (*entrypoint, *(spec.command or (self.command if spec.entrypoint is None else ())))

    def knows_program(self, spec: ContainerSpec) -> bool:
        """Return whether the program that a container runs was found in the image before."""
        argv = self.find_argv(spec)
        return bool(argv) and (argv[0], spec.environment.get("PATH", self.path)) in self.programs


class LocalImages:
    """Resolves names to images of the engine and caches the result.

    Args:
        api: client of the engine.
        catalogue: this project's images by requested name.
        in_place: images of the user's own that run in place of those.
    """

    def __init__(self, api: docker.APIClient, catalogue: ImageCatalogue, in_place: ImagesInPlace | None = None) -> None:
        self._api = api
        self._in_place = in_place or ImagesInPlace()
        self._catalogue = catalogue
        self._resolved: dict[str, LocalImage] = {}
        # Held while a name is resolved, which may take minutes: two jobs of one image pull it once.
        self._resolving: dict[str, threading.Lock] = {}
        self._writing_library = threading.Lock()

    def resolve(self, image: str, say: Callable[[str], None] = lambda _text: None) -> LocalImage:
        """Return the image for a requested name.

        An image that the engine does not have is built or pulled, which may take minutes.

        Args:
            image: requested name.
            say: called with progress messages of a build.

        Raises:
            ImageNotFoundError: no local image matches and none can be pulled.
            EngineUnavailableError: the engine does not answer.
        """
        known = self._find_known(image)
        if known is not None:
            return known
        with self._resolving.setdefault(image, threading.Lock()), translated(f"resolve image {image}"):
            found = self._resolved.get(image) or self._look_up(image, say)
            self._resolved[image] = found
            return found

    def describe_substitution(self, image: str) -> str | None:
        """Describe how the image of this project that runs instead of ``image`` differs from it.

        None if it does not differ, or if the engine does not answer.

        Raises:
            VersionRefusedError: no image has the requested version, and the catalogue is strict.
        """
        if (known := self._find_known(image)) is not None:
            return known.resolved.substitution
        if (own := self._in_place.resolve(image)) is not None:
            return own.substitution
        try:
            found = self._catalogue.describe_substitution(image)
        except VersionRefusedError:
            if self._lacks(image):
                raise
            return None
        return found if found is not None and self._lacks(image) else None

    def has(self, image: str, *, exactly: bool = True) -> bool:
        """See ``container_runtime.runtime.ContainerRuntime.has_image``."""
        if exactly:
            return self._is_loaded(image) is True
        return self._catalogue.has(image) or self._in_place.resolve(image) is not None or not self._lacks(image)

    def forget(self, image: str) -> None:
        """Remove the name from the cache, so that the next ``resolve`` asks the engine."""
        self._resolved.pop(image, None)

    def check_program(self, container_id: str, spec: ContainerSpec, image: LocalImage) -> None:
        """Check that the container has the program that it is to run.

        The engine itself does not report a missing program, because it starts an init process first.

        Raises:
            ContainerStartError: no program is given, or it is not in the container.
        """
        argv = image.find_argv(spec)
        if not argv:
            raise ContainerStartError(f"Container {spec.name}: image {spec.image} has no entry point; give a command.")
        if image.knows_program(spec):
            return
        path = spec.environment.get("PATH", image.path)
        folders = [image.working_folder] if "/" in argv[0] else [folder for folder in path.split(":") if folder]
        if not any(self._is_executable(container_id, str(PurePosixPath(folder) / argv[0])) for folder in folders):
            where = (
                "is not an executable file in it" if "/" in argv[0] else f"is not an executable file on its PATH={path}"
            )
            raise ContainerStartError(f"Container {spec.name} ({spec.image}): {argv[0]!r} {where}.")
        if "/" not in argv[0]:  # a path with a slash may be in a mount, which differs between containers
            image.programs.add((argv[0], path))

    def read_environment_settings(self, container_id: str, image: LocalImage) -> str | None:
        """Return the content of ``pyvenv.cfg``, which names the interpreter; None for an image not of this project."""
        if image.is_ours and image.environment_settings is None:
            chunks, _ = self._api.get_archive(container_id, "/opt/venv/pyvenv.cfg")
            with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as tar:
                file = tar.extractfile("pyvenv.cfg")
                assert file is not None
                image.environment_settings = file.read().decode()
        return image.environment_settings

    def _find_known(self, image: str) -> LocalImage | None:
        """Return the cached image for a requested name; None if there is none, or if the name means another by now."""
        known = self._resolved.get(image)
        if known is None or time.monotonic() - known.checked < RECHECK_SECONDS:
            return known
        try:
            with translated(f"look for image {image}"):
                is_same = self._find_id(image, known.resolved.local) == known.id
        except ContainerRuntimeError:
            return known  # the start itself says what the engine lacks
        if not is_same:
            self.forget(image)
            return None
        known.checked = time.monotonic()
        return known

    def _find_id(self, image: str, local: str) -> str | None:
        """Return the id of the image that a requested name means, of which ``local`` was the name; None if it is gone.

        An image that was loaded under the requested name comes before this project's, but not before the user's own.
        """
        names = [image, local] if local != image and self._in_place.resolve(image) is None else [local]
        for name in names:
            with suppress(docker.errors.ImageNotFound):
                return str(self._inspect(name)["Id"])
        return None

    def _look_up(self, image: str, say: Callable[[str], None]) -> LocalImage:
        parse_image_name(image)
        if (own := self._in_place.resolve(image)) is not None:
            inspected = self._find_or_pull(own.local)
            with self._writing_library:  # the images share it
                return LocalImage(own, inspected, self._in_place.write_library())
        resolved = ResolvedImage(requested=image, local=image)
        try:
            # An image with exactly this name was loaded on purpose, so it takes precedence.
            return LocalImage(resolved, self._inspect(image))
        except docker.errors.ImageNotFound:
            pass
        found = self._catalogue.find(image)
        if found is None:
            return LocalImage(resolved, self._pull(image))
        definition, substitution = found
        if definition.on_demand:
            self._build(definition, say)
        ours = ResolvedImage(image, local_name(definition), definition.note, substitution)
        try:
            return LocalImage(ours, self._inspect(ours.local))
        except docker.errors.ImageNotFound as exc:
            raise ImageNotFoundError(
                f"{image} runs as {ours.local}, which is not built yet: run `smdebug-emulator images build`."
            ) from exc

    def _find_or_pull(self, image: str) -> dict[str, Any]:
        try:
            return self._inspect(image)
        except docker.errors.ImageNotFound:
            return self._pull(image)

    def _pull(self, image: str) -> dict[str, Any]:
        try:
            repository, tag = docker.utils.parse_repository_tag(image)
            lines = self._api.pull(repository, tag=tag or "latest", stream=True, decode=True)
            for _ in read_transfer(lines, f"pull {image}"):
                pass
            return self._inspect(image)
        except (docker.errors.APIError, ContainerRuntimeError) as exc:
            why = getattr(exc, "explanation", None) or exc
            known = self._catalogue.describe_repositories(image)
            raise ImageNotFoundError(
                f"No image {image!r} on this machine, and it cannot be pulled ({why}). Load it with "
                f"`docker load` or `docker pull`, or use one of the repository names that are built here: {known}"
            ) from exc

    def _lacks(self, image: str) -> bool:
        """Return whether the engine has no image of exactly this name. False if it does not answer."""
        return self._is_loaded(image) is False

    def _is_loaded(self, image: str) -> bool | None:
        """Return whether the engine has an image of exactly this name; None if it does not answer."""
        try:
            with translated(f"look for image {image}"):
                try:
                    self._inspect(image)
                except docker.errors.ImageNotFound:
                    return False
        except ContainerRuntimeError as error:
            logger.info("Whether %s is loaded cannot be told now: %s", image, error)
            return None
        return True

    def _build(self, definition: ImageDefinition, say: Callable[[str], None]) -> None:
        """Build an image that is built on demand, unless it is up to date."""
        # A local import, because an emulator with all its images builds none.
        from container_runtime.docker.images.image_build import build_images

        try:
            build_images([definition.name], lambda _name, text: say(f"building the image {definition.name}: {text}"))
        except WheelhouseError as exc:
            raise ImageNotFoundError(f"The image {definition.name} cannot be built: {exc}") from exc

    def _inspect(self, name: str) -> dict[str, Any]:
        inspected: dict[str, Any] = self._api.inspect_image(name)  # type: ignore[no-untyped-call]
        return inspected

    def _is_executable(self, container_id: str, path: str) -> bool:
        response = self._api.head(
            build_url(self._api, f"/containers/{container_id}/archive"), params={"path": path}, timeout=REQUEST_SECONDS
        )
        if response.status_code == 404:
            return False
        raise_for_status(response)
        mode = json.loads(base64.b64decode(response.headers["X-Docker-Container-Path-Stat"]))["mode"]
        # Go's file mode: the type is in the high bits, the permissions are in the low bits.
        is_folder, is_link = mode & (1 << 31), mode & (1 << 27)
        return bool(is_link) or (not is_folder and bool(mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)))
