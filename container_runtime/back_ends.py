"""Container back ends, found by the entry points of installed distributions.

An entry point of the group ``smdebug_emulator.runtimes`` has the name that ``--runtime`` takes, and refers to a
``BackEnd``. Those of this project are declared in its own pyproject.toml, in the same way as anybody else's.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from container_runtime.runtime import ContainerRuntimeError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from importlib.metadata import EntryPoint
    from pathlib import Path

    from container_runtime.images.catalogue import ImageCatalogue
    from container_runtime.images.own_images import OwnImage
    from container_runtime.runtime import ContainerRuntime

GROUP = "smdebug_emulator.runtimes"
"""Group of the entry points."""

_DISTRIBUTION = "smdebug-emulator"


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """What the emulator's settings say to a back end. A back end ignores what does not concern it.

    Attributes:
        state_dir: the emulator's state folder. A back end that keeps something on this machine keeps it there.
        user: uid and gid that containers run as; None for the back end's default.
        strict_versions: whether to refuse an image whose version no local image has.
        allow_internet: whether containers can reach the internet, and so everything else on their network.
        address: IP address of this machine for containers of other machines that can reach the internet. None for one
            that the back end finds.
        registry: prefix of the image names that other machines pull. None if they get images from this one.
        shared_folder: folder that all machines have at the same path. None if they share none.
        lost: folder whose content this machine has lost while containers still have it. None if nothing was lost.
        warm: images whose frameworks are imported at the start, so that local processes are forks of warm interpreters.
            None for no warm interpreters, and no spare containers.
        warm_memory_bytes: most memory of spare containers. None for a quarter of the machine's.
        own_images: images of the user's own that run in place of this project's.
        adds_smdebug: whether these get this project's smdebug when a container starts.
        why: why this back end is opened, for the user. None if the user asked for it.
    """

    state_dir: Path
    user: tuple[int, int] | None = None
    strict_versions: bool = False
    allow_internet: bool = False
    address: str | None = None
    registry: str | None = None
    shared_folder: Path | None = None
    lost: Path | None = None
    warm: tuple[str, ...] | None = None
    warm_memory_bytes: int | None = None
    own_images: tuple[OwnImage, ...] = ()
    adds_smdebug: bool = True
    why: str | None = None

    @property
    def instance_id(self) -> str:
        """The emulator's id, 12 hexadecimal digits: one with the same state folder has the same."""
        import hashlib  # loads OpenSSL, for which a command that opens no back end would wait

        return hashlib.sha256(str(self.state_dir.resolve()).encode()).hexdigest()[:12]

    @property
    def reach(self) -> str:
        """What containers reach, for the sentence that tells the user."""
        return "the internet" if self.allow_internet else "this emulator and nothing else"

    def refuse_own_images(self, why: str) -> None:
        """Refuse images of the user's own, for a back end that cannot run them.

        Raises:
            ContainerRuntimeError: there are some.
        """
        if self.own_images:
            raise ContainerRuntimeError(
                f"--image {self.own_images[0].repository}={self.own_images[0].image} needs --runtime docker: {why}."
            )

    def open_catalogue(self) -> ImageCatalogue:
        """Return this project's images by requested name."""
        from container_runtime.images.catalogue import ImageCatalogue  # commands that open no back end do without

        return ImageCatalogue(strict=self.strict_versions)


@dataclass(frozen=True, slots=True)
class ChosenRuntime:
    """An opened back end.

    Attributes:
        runtime: the back end.
        reason: one or two sentences for the user who starts the emulator.
        describe_swarm: reports the nodes that it has and what runs on them. None if it has one machine.
    """

    runtime: ContainerRuntime
    reason: str
    describe_swarm: Callable[[], dict[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Traits:
    """How a back end differs from others within what the interface leaves open; the contract suite asks.

    Attributes:
        has_images: whether a container has the file system and the user of an image, and limits of its own.
        resolves_names: whether hosts of a network find each other by their names, in place of addresses.
        knows_hosts_early: whether a host finds the others before they run and after their end.
        may_refuse_isolation: whether this machine may be unable to isolate a container, which a start then says.
        isolated_interfaces: the network interfaces of a container that reaches nothing.
        counts_network: whether a meter counts the network traffic of a container.
        counts_disk: whether what a container writes to a mount goes to a disk and is counted.
        returns_scratch: whether the scratch folder holds what the container wrote to it.
    """

    has_images: bool = True
    resolves_names: bool = True
    knows_hosts_early: bool = True
    may_refuse_isolation: bool = False
    isolated_interfaces: tuple[str, ...] = ("lo",)
    counts_network: bool = True
    counts_disk: bool = True
    returns_scratch: bool = True


class BackEnd(NamedTuple):
    """What an entry point refers to.

    Attributes:
        open: opens the back end. Raises ContainerRuntimeError; the message says what to do.
        build_images: builds what is missing of the named images, or of all if none is named, and returns the names of
            those that it built. It calls its second argument with the name of an image and what happens to it.
        demo_images: names of the images that ``demo`` needs; none for all.
        survey: looks at the machines for ``doctor`` and yields, for each finding, ``ok``, ``note`` or ``missing``, what
            was found, and what to do. Its second argument is whether an emulator runs with these options. None if there
            is nothing to look at.
        traits: how it differs from other back ends.
    """

    open: Callable[[RuntimeOptions], ChosenRuntime]
    build_images: Callable[[Collection[str], Callable[[str, str], None]], list[str]]
    demo_images: tuple[str, ...] = ()
    survey: Callable[[RuntimeOptions, bool], Iterator[tuple[str, str, str]]] | None = None
    traits: Traits = Traits()


def is_back_end(name: str) -> bool:
    """Return whether a back end of this name is installed. Nothing is imported for it."""
    return name in _find_own_entry_points() or name in _find_entry_points()


def list_back_ends() -> tuple[str, ...]:
    """Return the names of all installed back ends. Nothing is imported for it."""
    return tuple(_find_entry_points())


def load_back_end(name: str) -> BackEnd:
    """Import a back end.

    Raises:
        ContainerRuntimeError: none has this name, or it cannot be imported.
    """
    found = _find_own_entry_points().get(name) or _find_entry_points().get(name)
    if found is None:
        raise ContainerRuntimeError(
            f"No container back end is named {name!r}; there is {', '.join(list_back_ends()) or 'none'}. Back ends "
            f"are entry points of {GROUP}: after a change of them, install their distribution again."
        )
    try:
        loaded = found.load()
    except Exception as error:
        raise ContainerRuntimeError(
            f"The container back end {name} ({found.value}) cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(loaded, BackEnd):
        raise ContainerRuntimeError(f"The container back end {name} ({found.value}) is not a BackEnd.")
    return loaded


@cache
def _find_own_entry_points() -> Mapping[str, EntryPoint]:
    """Find those of this project alone: to look into every installed distribution takes ten times as long."""
    from importlib.metadata import PackageNotFoundError, distribution  # few commands need it

    try:
        found = distribution(_DISTRIBUTION).entry_points.select(group=GROUP)
    except PackageNotFoundError:
        return {}
    return {each.name: each for each in found}


@cache
def _find_entry_points() -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=GROUP), key=lambda each: each.name)
    # A name means the same wherever it is given: nobody else's entry point replaces one of this project.
    return {**{each.name: each for each in found}, **_find_own_entry_points()}
