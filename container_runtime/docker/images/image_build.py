"""Builds of the images of ``rules_images/`` on a Docker engine.

Each image is built from a base image that contains only its requirements, so a change of smdebug rebuilds only two
small layers. Base and image have a label with a hash of everything they are built from, called the key. An image whose
key is up to date is not rebuilt.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import IO, Any, NamedTuple

import docker
import docker.errors
import requests.exceptions

from container_runtime.docker.border import connect
from container_runtime.docker.images.base_image import PROGRAM, STEP_SECONDS, build_base_image
from container_runtime.docker.images.emulator_images import EMULATOR, TAGS, build_tag, list_tags
from container_runtime.docker.images.image_content import hash_parts, key_of_contents, read_files, write_context
from container_runtime.docker.images.image_origin import ensure_origin
from container_runtime.file_lock import hold_lock
from container_runtime.images.build_record import describe_build, record_build
from container_runtime.images.catalogue import (
    IMAGE_LABEL,
    KEY_LABEL,
    NAMESPACE,
    ImageCatalogue,
    ImageDefinition,
    local_name,
)
from container_runtime.images.installation import ROOT, collect_emulator, collect_smdebug, locate_cache
from container_runtime.images.lock_files import LOCK, read_requirements
from container_runtime.images.wheelhouse import IMAGE_PYTHON, fetch_wheels, key_of_requirements
from container_runtime.runtime import ContainerRuntimeError

_VENV = "/opt/venv"
_SITE_PACKAGES = f"{_VENV}/lib/python3.11/site-packages"
# What the engine calls the architectures of the kernel.
_ENGINE_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
_ORIGIN = f"{NAMESPACE}/origin:bookworm"
# Stage of a Dockerfile that depends on its base image alone.
_TRIMMED = "trimmed"
# Age at which an image without a name is not the last step of a build that still runs.
_LEFT_AFTER_SECONDS = 2 * STEP_SECONDS


class Build(NamedTuple):
    """An up-to-date build of an image.

    Attributes:
        definition: definition of the image.
        base: name of the base image with its requirements; the tag is the key of the base.
        key: hash of everything that the image is built from.
    """

    definition: ImageDefinition
    base: str
    key: str

    @property
    def name(self) -> str:
        """The image name that a back end looks up."""
        return local_name(self.definition)

    @property
    def bases(self) -> set[str]:
        """The names of what it stands on: the base image, and what a Dockerfile has made of that one."""
        return {self.base, f"{self.base}-{_TRIMMED}"}


def plan_builds(catalogue: ImageCatalogue, root: Path = ROOT) -> list[Build]:
    """Return the up-to-date build of every image, from its definition and the files of smdebug below ``root``."""
    smdebug_key = key_of_contents(collect_smdebug(root))
    builds = []
    for definition in catalogue:
        requirements = read_requirements(definition, IMAGE_PYTHON)
        base_key = hash_parts(read_files(catalogue.base_folder), key_of_requirements(requirements))
        parts = [base_key, repr((definition.entrypoint, sorted(definition.environment.items())))]
        parts += [repr(sorted(each.items())) for each in (definition.links, definition.commands) if each]
        parts += [smdebug_key] if definition.with_smdebug else []
        parts += [key_of_contents(collect_emulator(root))] if definition.with_emulator else []
        # The lock files of the folder are left out: the key of the base covers the one that this image uses.
        files = [each for each in read_files(definition.folder, {"image.toml"}) if not each[0].endswith(LOCK)]
        key = hash_parts(files, *parts)
        builds.append(Build(definition, f"{NAMESPACE}/base:{base_key}", key))
    return builds


def find_stale(api: docker.APIClient, builds: Iterable[Build]) -> list[Build]:
    """Return the builds that the engine does not have or has with a different key."""
    return [build for build in builds if build.key != _key_of_image(api, build.name)]


def build_images(
    names: Iterable[str] = (),
    report: Callable[[str, str], None] = lambda _name, _text: None,
    root: Path = ROOT,
    cache: Path | None = None,
    platform: str | None = None,
) -> list[str]:
    """Build the named images that are not up to date, and return the names of the images that were built.

    Two processes can call this at once: the second waits until the first has built the images.

    Args:
        names: image names from the definitions, and ``emulator:TAG``. If empty, all that are not built on demand.
        report: called with the name of an image and a progress message.
        root: folder that contains ``rules_images/`` and ``smdebug/``.
        cache: folder for wheels. The default is the cache of this installation.
        platform: the platform that the images are wanted for, such as ``linux/arm64``; it has to be the engine's.

    Raises:
        ContainerRuntimeError: a name is unknown, the engine has another platform, or a build failed; the message holds
            the last lines of its output.
        EngineUnavailableError: no engine answers.
    """
    catalogue = ImageCatalogue(root / "rules_images")
    tags, names = _split_tags(names)
    chosen = catalogue.select(names)
    builds = [build for build in plan_builds(catalogue, root) if build.definition in chosen]
    with closing(connect()) as api:
        if platform is not None:
            _check_platform(api, platform)
        stale = find_stale(api, builds)
        if not stale and not tags:
            return []
        cache = cache or locate_cache()
        with hold_lock(cache / "images.lock", lambda: report("all", "waiting for another build")):
            stale = find_stale(api, builds)
            _build_bases(api, catalogue, stale, cache, report)
            for build in stale:
                report(build.definition.name, "installing smdebug" if build.definition.with_smdebug else "finishing")
                replaced = api.images(build.name)
                _build_image(api, build, root)
                for image in replaced:
                    _remove_replaced(api, image["Id"])
                report(build.definition.name, "built")
            built = [build.definition.name for build in stale]
            bare = f"{NAMESPACE}/{EMULATOR}:latest"
            built += [f"{EMULATOR}:{tag}" for tag in tags if build_tag(api, tag, bare, cache, _run_build, report)]
            _remove_old(api, plan_builds(catalogue, root))
    return built


def _check_platform(api: docker.APIClient, platform: str) -> None:
    """Check that images for a platform can be built on this engine.

    Raises:
        ContainerRuntimeError: the engine has another platform.
    """
    found = f"linux/{api.version()['Arch']}"
    system, _, architecture = platform.rpartition("/")
    wanted = f"{system or 'linux'}/{_ENGINE_NAMES.get(architecture, architecture)}"
    if wanted != found:
        raise ContainerRuntimeError(
            f"Images for {wanted} are built on an engine of that platform, and this one is {found}: run the same "
            "command where such an engine is, for the packages are installed by running them."
        )


def _split_tags(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the tags of the emulator's image among names, and the names of images; tags need the bare image."""
    given = list(names)
    tags = [tag for tag in TAGS if f"{EMULATOR}:{tag}" in given]
    others = [name for name in given if name.removeprefix(f"{EMULATOR}:") not in tags]
    if not tags and EMULATOR not in others:
        return [], others
    return list(dict.fromkeys(["slim", *tags])), list(dict.fromkeys([*others, EMULATOR]))


def _build_bases(
    api: docker.APIClient,
    catalogue: ImageCatalogue,
    builds: Sequence[Build],
    cache: Path,
    report: Callable[[str, str], None],
) -> None:
    missing = {build.base: build.definition for build in builds if not api.images(build.base)}
    if not missing:
        return
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="image-build") as pool:
        # Debian packages and Python packages come from different servers, so fetch them in parallel.
        origin = pool.submit(ensure_origin, api, _ORIGIN, lambda text: report("base", text))
        fetched = {}
        for base, definition in missing.items():
            requirements = read_requirements(definition, IMAGE_PYTHON)
            report(definition.name, f"fetching wheels: {describe_build(cache, 'docker', definition, requirements)}")
            fetched[base] = pool.submit(fetch_wheels, requirements, cache)
        for base, definition in missing.items():
            started = time.monotonic()
            wheels = fetched[base].result()
            report(definition.name, "installing its requirements")
            labels = {IMAGE_LABEL: "base", KEY_LABEL: base.rpartition(":")[2]}
            build_base_image(api, base, labels, origin.result(), catalogue.base_folder / PROGRAM, wheels, cache)
            record_build(cache, "docker", definition.name, time.monotonic() - started)


def _build_image(api: docker.APIClient, build: Build, root: Path) -> None:
    definition = build.definition
    # These settings come from image.toml, which both back ends read.
    settings = [f"ENV {name}={json.dumps(value)}" for name, value in definition.environment.items()]
    settings += [
        f"RUN ln -sf {_SITE_PACKAGES}/{target} {_SITE_PACKAGES}/{link}" for link, target in definition.links.items()
    ]
    settings += [_replace_command(name, module) for name, module in definition.commands.items()]
    if definition.entrypoint:
        settings.append(f"ENTRYPOINT {json.dumps(definition.entrypoint)}")
    dockerfile = (definition.folder / "Dockerfile").read_text(encoding="utf-8") + "\n".join(settings) + "\n"
    contents: dict[str, Path | bytes] = {"Dockerfile": dockerfile.encode()}
    contents |= {path.name: path for path in definition.programs}
    if definition.with_smdebug:
        contents |= {f"smdebug/{name}": content for name, content in collect_smdebug(root).items()}
    if definition.with_emulator:
        contents |= {f"project/{name}": content for name, content in collect_emulator(root).items()}
    labels = {IMAGE_LABEL: definition.name, KEY_LABEL: build.key}
    stages: list[tuple[str | None, str, dict[str, str]]] = [(None, build.name, labels)]
    if f"AS {_TRIMMED}\n" in dockerfile:
        # With a name of its own this stage stays, and the next build begins after it.
        stages.insert(0, (_TRIMMED, f"{build.base}-{_TRIMMED}", {IMAGE_LABEL: "base"}))
    with tempfile.TemporaryFile() as context:
        write_context(context, contents)
        for stage, tag, labels in stages:
            context.seek(0)
            _run_build(api, context, tag, {"BASE": build.base}, labels, stage)


def _replace_command(name: str, module: str) -> str:
    """Return the Dockerfile instruction that makes a program installed by pip run a module of this project.

    The program stays executable.
    """
    lines = f"#!{_VENV}/bin/python\\nfrom {module} import main\\nmain()\\n"
    return f"RUN test -x {_VENV}/bin/{name} && printf '{lines}' > {_VENV}/bin/{name}"


def _run_build(
    api: docker.APIClient,
    context: IO[bytes],
    tag: str,
    arguments: dict[str, str],
    labels: dict[str, str],
    stage: str | None = None,
) -> None:
    last: list[str] = []
    try:
        steps = api.build(
            fileobj=context,
            custom_context=True,
            tag=tag,
            buildargs=arguments,
            labels=labels,
            target=stage,
            network_mode="none",
            rm=True,
            forcerm=True,
            decode=True,
            timeout=STEP_SECONDS,
        )
        for step in steps:
            last = [*last, str(step.get("stream") or step.get("error") or "").rstrip()][-15:]
            if "error" in step:
                raise ContainerRuntimeError(f"Building {tag} failed:\n" + "\n".join(filter(None, last)))
    except docker.errors.APIError as exc:
        raise ContainerRuntimeError(f"Building {tag} failed: {exc.explanation or exc}") from exc


def _remove_old(api: docker.APIClient, builds: Sequence[Build]) -> None:
    """Remove images of earlier builds: images of this project that no current build uses.

    An image that somebody built from one of them has inherited its label, and another name: it stays.
    """
    wanted = {name for build in builds for name in (build.name, *build.bases)} | list_tags()
    for image in api.images(filters={"label": IMAGE_LABEL}):
        for name in image["RepoTags"] or ():
            if name.startswith(f"{NAMESPACE}/") and name not in wanted:
                _remove_image(api, name)
    # What interrupted builds left. A younger one may be the last step of a build that runs, of another checkout.
    for image in api.images(filters={"label": IMAGE_LABEL, "dangling": True}):
        if time.time() - image["Created"] > _LEFT_AFTER_SECONDS:
            _remove_image(api, image["Id"])


def _remove_replaced(api: docker.APIClient, image_id: str) -> None:
    """Remove the image that had a name before a build, if it has none now."""
    if any(image["Id"] == image_id for image in api.images(filters={"dangling": True})):
        _remove_image(api, image_id)


def _remove_image(api: docker.APIClient, name: str) -> None:
    try:
        api.remove_image(name)
    except docker.errors.ImageNotFound:
        return
    except requests.exceptions.ReadTimeout:
        return  # the engine goes on: layers of gigabytes may take it minutes
    except docker.errors.APIError as exc:
        # A container still uses the image, or another image is built from it. The next build tries again.
        if exc.status_code != 409:
            raise ContainerRuntimeError(f"The old image {name} cannot be removed: {exc.explanation}") from exc


def find_size(api: docker.APIClient, name: str) -> int | None:
    """Return the size of an image in bytes, or None if the engine does not have it."""
    found: list[dict[str, Any]] = api.images(name)
    return int(found[0]["Size"]) if found else None


def _key_of_image(api: docker.APIClient, name: str) -> str | None:
    found: list[dict[str, Any]] = api.images(name)
    return (found[0]["Labels"] or {}).get(KEY_LABEL) if found else None
