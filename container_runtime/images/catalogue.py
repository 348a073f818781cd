"""Image catalogue: requested image names resolved to those we have.

Each folder with an ``image.toml`` defines an image. The file lists the repository names that the image replaces, its
entry point and its environment. Both the Docker images and the process back end use this file, so they agree.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from container_runtime.images.installation import DEFINITIONS_FOLDER
from container_runtime.runtime import ContainerRuntimeError, ImageNotFoundError, VersionRefusedError

NAMESPACE = "smdebug-emulator"
"""This project's Docker images are named ``<namespace>/<image name>:latest``."""

KEY_LABEL = "smdebug-emulator.key"
"""Label of this project's images: hash of everything that the image is built from."""

IMAGE_LABEL = "smdebug-emulator.image"
"""Label of this project's images: name of the image."""

_VERSION_TAG = re.compile(r"\d+(\.\d+)*")
# Keys of an image.toml, which are attributes of ImageDefinition, and their types.
_KEYS = {
    **dict.fromkeys(("name", "note", "python", "version", "warm_hook"), str),
    **dict.fromkeys(("repositories", "requirements", "extras", "entrypoint", "warm_modules", "warm_variables"), list),
    **dict.fromkeys(("commands", "environment", "links"), dict),
    "environments": list,
    "fetched_mb": int,
    **dict.fromkeys(("on_demand", "with_emulator", "with_smdebug", "warm_scripts"), bool),
}
# Keys of each entry of `environments`, which replace those of the image.
_ENVIRONMENT_KEYS = {
    **dict.fromkeys(("version", "below", "python"), str),
    **dict.fromkeys(("requirements", "extras"), list),
    "fetched_mb": int,
}


class ImageName(NamedTuple):
    """The parts of an image name.

    Attributes:
        path: everything before tag and digest, including the registry.
        repository: the last component of ``path``, for example ``pytorch-training``.
        tag: text after ``:``, or None.
        digest: text after ``@``, or None.
    """

    path: str
    repository: str
    tag: str | None = None
    digest: str | None = None


def parse_image_name(image: str) -> ImageName:
    """Parse an image name such as ``registry:5000/a/b:tag@digest``.

    Raises:
        ImageNotFoundError: the text is not a valid image name.
    """
    rest, _, digest = image.partition("@")
    head, slash, last = rest.rpartition("/")
    repository, _, tag = last.partition(":")
    if not repository or any(character.isspace() for character in image):
        raise ImageNotFoundError(f"{image!r} is not an image name; expected [registry/]repository[:tag].")
    return ImageName(path=head + slash + repository, repository=repository, tag=tag or None, digest=digest or None)


@dataclass(frozen=True, slots=True)
class ImageDefinition:
    """One image of ``rules_images/``, as defined in its ``image.toml``.

    Attributes:
        name: its repository name; the Docker image is ``<namespace>/<name>``.
        folder: folder of the Dockerfile and the image.toml.
        repositories: the requested repository names for which this image runs, including ``name``.
        place: path below site-packages of the content of ``folder``, for example ``rules_images/lambda``.
        python: the only Python version for which its requirements have wheels, for example ``3.11``. None if there are
            wheels for several versions.
        version: version tag of the framework in the image. None if the image serves all versions.
        below: this environment serves versions older than this one. None for the environment of the newest version.
        fetched_mb: size in MB of the wheels that a build fetches, those for the CPU; 0 if it was not measured.
        on_demand: whether the image is built only when a job needs it or when it is named explicitly.
        note: message for the log of every job that runs the image, or None.
        requirements: requirements that pip installs in the image.
        extras: requirements of some scripts, which it installs besides. An interpreter that lacks them still serves.
        with_smdebug: whether this project's smdebug package is installed in the image.
        with_emulator: whether all of this project's packages are.
        entrypoint: program and arguments that run before a container's command.
        environment: environment variables of every container of the image.
        links: symbolic links in site-packages: link name to a pattern of the target, for example a library under the
            name that another package expects.
        commands: programs to replace, of those that the requirements install: program name to a module of this project
            whose ``main`` runs instead.
        warm_modules: modules that a warm interpreter of the image imports; empty if the image has none.
        warm_variables: beginnings of the names of environment variables that these modules read when they are imported.
        warm_hook: module whose ``main`` a fork of the warm interpreter calls first, or an empty string.
        warm_scripts: whether the image's program starts a script that needs these modules.
    """

    name: str
    folder: Path
    repositories: tuple[str, ...]
    place: str = ""
    python: str | None = None
    version: str | None = None
    below: str | None = None
    fetched_mb: int = 0
    on_demand: bool = False
    note: str | None = None
    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    with_smdebug: bool = False
    with_emulator: bool = False
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    warm_modules: tuple[str, ...] = ()
    warm_variables: tuple[str, ...] = ()
    warm_hook: str = ""
    warm_scripts: bool = False

    @property
    def installed(self) -> tuple[str, ...]:
        """All requirements that pip installs in the image."""
        return (*self.requirements, *self.extras)

    @property
    def script_starters(self) -> list[str]:
        """The modules of the image whose programs start the job's script in a warm interpreter."""
        entrypoint = self.entrypoint[2:3] if self.entrypoint[:2] == ("python", "-m") else ()
        return [*self.commands.values(), *entrypoint] if self.warm_scripts else []

    @property
    def programs(self) -> list[Path]:
        """The folders of the image's own programs, beside its image.toml."""
        return sorted(path for path in self.folder.iterdir() if path.is_dir() and path.name != "__pycache__")


def parse_version(text: str | None) -> tuple[int, ...]:
    """Return the numbers at the start of a tag or version; an empty tuple if it starts with something else."""
    found = _VERSION_TAG.match(text or "")
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def choose_environment(environments: Sequence[ImageDefinition], requested: ImageName) -> ImageDefinition:
    """Return the environment for a requested version.

    This is the nearest of the environments for older versions that serve it, otherwise the newest one.
    """
    wanted = parse_version(requested.tag)
    older = [definition for definition in environments if wanted and wanted < parse_version(definition.below)]
    return min(older, key=lambda definition: parse_version(definition.below), default=environments[0])


def holds_version(definition: ImageDefinition, requested: ImageName) -> bool:
    """Return whether an image has the requested version. Only the major and minor numbers are compared."""
    wanted = parse_version(requested.tag)[:2]
    return definition.version is None or not wanted or parse_version(definition.version)[: len(wanted)] == wanted


def describe_substitution(
    definition: ImageDefinition, requested: ImageName, environments: Sequence[ImageDefinition] = ()
) -> str | None:
    """Describe how ``definition`` differs from the requested image; None if it does not.

    The first sentence is the whole in brief.
    """
    if requested.digest is not None:
        return f"The request pins {requested.digest}; {definition.name} as built here runs in its place."
    if definition.version is None or not parse_version(requested.tag):
        return None
    if f"{definition.version}-".startswith(f"{requested.tag}-"):
        return None  # the tag may leave out what the image is made for: the processor, and the version of Python
    asked, runs = (".".join(map(str, parse_version(each))) for each in (requested.tag, definition.version))
    if asked == runs:
        asked, runs = str(requested.tag), definition.version
    text = f"asked {asked}, runs {runs}. The request is for {requested.repository}:{requested.tag}; "
    if len(environments) < 2:
        return f"{text}the local image is version {definition.version} and runs in its place."
    reason = f"made for what is older than {definition.below}" if definition.below else "the newest"
    there = ", ".join(str(found.version) for found in environments)
    return f"{text}of the local images ({there}) {definition.version}, {reason}, runs in its place."


class ImageCatalogue:
    """All images of this project, found by scanning a folder for ``image.toml`` files.

    Args:
        folder: folder to scan, with all its subfolders.
        strict: whether to refuse a request for a version that no environment has.

    Raises:
        ContainerRuntimeError: the folder contains no image, or an ``image.toml`` is invalid; the message names the
            file.
    """

    def __init__(self, folder: Path = DEFINITIONS_FOLDER, *, strict: bool = False) -> None:
        self.folder = folder
        self._strict = strict
        # The environments of each repository name, the newest first.
        self._by_repository: dict[str, list[ImageDefinition]] = {}
        for path in sorted(folder.rglob("image.toml")):
            environments = _read_definitions(path, folder)
            for repository in environments[0].repositories:
                other = self._by_repository.setdefault(repository, environments)
                if other is not environments:
                    raise ContainerRuntimeError(f"{path}: {repository!r} is already answered by {other[0].folder}.")
        if not self._by_repository:
            raise ContainerRuntimeError(f"{folder} holds no image.toml: install smdebug-emulator again.")

    def __iter__(self) -> Iterator[ImageDefinition]:
        seen = {definition.name: definition for found in self._by_repository.values() for definition in found}
        return iter(seen.values())

    @property
    def base_folder(self) -> Path:
        """The folder of the Dockerfile of the base images."""
        return self.folder / "base"

    @property
    def repositories(self) -> tuple[str, ...]:
        """All repository names for which there is an image, sorted."""
        return tuple(sorted(self._by_repository))

    def describe_repositories(self, image: str) -> str:
        """Return sentences for a message about an unknown image: the names that jobs can use, and the most similar."""
        # smdebug is in the images of jobs; the others are those of the emulator and of functions.
        known = [name for name in self.repositories if self._by_repository[name][0].with_smdebug]
        near = get_close_matches(parse_image_name(image).repository, known, n=1)
        return f"{', '.join(known)}.{f' Did you mean {near[0]}?' if near else ''}"

    def list_environments(self, repository: str) -> list[ImageDefinition]:
        """Return the environments of a repository name, the oldest first; none if no image has that name."""
        found = self._by_repository.get(repository, [])
        return [*sorted(found[1:], key=lambda definition: parse_version(definition.below)), *found[:1]]

    def select(self, names: Iterable[str]) -> list[ImageDefinition]:
        """Return the images with these names. Without names, return all images that are not built on demand.

        Raises:
            ContainerRuntimeError: no image has one of the names.
        """
        known = {definition.name: definition for definition in self}
        wanted = set(names)
        if unknown := wanted - known.keys():
            text = f"No image named {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}."
            raise ContainerRuntimeError(text)
        return [found for name, found in known.items() if (name in wanted if wanted else not found.on_demand)]

    def find(self, image: str) -> tuple[ImageDefinition, str | None] | None:
        """Return the definition that runs for ``image`` and how it differs from the request; None if there is none.

        Raises:
            ImageNotFoundError: ``image`` is not a valid image name.
            VersionRefusedError: no image of the repository has the requested version, and the catalogue is strict.
        """
        requested = parse_image_name(image)
        environments = self._by_repository.get(requested.repository)
        if environments is None:
            return None
        definition = choose_environment(environments, requested)
        if self._strict and not holds_version(definition, requested):
            there = ", ".join(str(found.version) for found in environments)
            raise VersionRefusedError(
                f"No image of {requested.repository} has version {requested.tag}, and the emulator was started with "
                f"--strict-versions. There are {there}: request one of these, or start it without --strict-versions."
            )
        return definition, describe_substitution(definition, requested, environments)

    def has(self, image: str) -> bool:
        """Return whether an image of this project runs for ``image``."""
        try:
            return self.find(image) is not None
        except ImageNotFoundError:
            return False

    def describe_substitution(self, image: str) -> str | None:
        """Describe how this project's image for ``image`` differs from it; None without a difference or an image.

        Raises:
            VersionRefusedError: see ``find``.
        """
        try:
            found = self.find(image)
        except VersionRefusedError:
            raise
        except ImageNotFoundError:
            return None
        return found and found[1]


def local_name(definition: ImageDefinition) -> str:
    """Return the Docker image name of the newest build of ``definition``."""
    return f"{NAMESPACE}/{definition.name}:latest"


def _read_definitions(path: Path, root: Path) -> list[ImageDefinition]:
    """Return the image that a file defines, followed by its other environments, which are built on demand."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as exc:
        raise ContainerRuntimeError(f"{path} cannot be read: {exc}") from exc
    others = table.pop("environments", [])
    members = _read_members(path, table, _KEYS)
    if "name" not in members:
        raise ContainerRuntimeError(f"{path}: name is missing.")
    members["repositories"] = tuple(dict.fromkeys((table["name"], *table.get("repositories", ()))))
    newest = ImageDefinition(**members, folder=path.parent, place=f"{root.name}/{path.parent.relative_to(root)}")
    environments = [newest]
    for other in others:
        found = _read_members(path, other, _ENVIRONMENT_KEYS)
        if missing := [key for key in ("version", "below", "requirements") if key not in found]:
            raise ContainerRuntimeError(f"{path}: {missing[0]} is missing in one of environments.")
        name = f"{newest.name}-{'.'.join(map(str, parse_version(found['version'])[:2]))}"
        environments.append(replace(newest, **{"fetched_mb": 0, **found}, name=name, on_demand=True))
    return environments


def _read_members(path: Path, table: Mapping[str, Any], keys: Mapping[str, type]) -> dict[str, Any]:
    for key, value in table.items():
        if key not in keys:
            raise ContainerRuntimeError(f"{path}: unknown key {key!r}; known are {', '.join(keys)}.")
        if not isinstance(value, keys[key]) or not _holds_text(value):
            raise ContainerRuntimeError(f"{path}: {key} is {value!r}; give text, or a list or table of text.")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


def _holds_text(value: Any) -> bool:
    items = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
    return all(isinstance(item, str) for item in items)
