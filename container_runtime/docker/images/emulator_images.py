"""Tags of the emulator's own image: bare, or with environments of images.

The emulator in a container fetches what a job needs into its volume. An image with environments needs no package index.
"""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from container_runtime.docker.images.image_content import hash_parts, write_context
from container_runtime.images.catalogue import KEY_LABEL, NAMESPACE, ImageCatalogue
from container_runtime.images.lock_files import read_requirements
from container_runtime.images.wheelhouse import IMAGE_PYTHON, fetch_wheels, key_of_requirements

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import IO

    import docker

EMULATOR = "emulator"
TAGS: dict[str, tuple[str, ...]] = {
    "slim": (),
    "pytorch": ("pytorch-training",),
    "full": ("pytorch-training", "tensorflow-training", "sagemaker-xgboost", "sagemaker-scikit-learn"),
}
"""The images whose environments are in the emulator's image, by its tag."""

_FOLDER = "/opt/environments"
# The layer that a later one makes smaller stays as large as it was: a stage of its own installs and trims.
_DOCKERFILE = """\
ARG BASE
FROM ${BASE} AS built
LABEL smdebug-emulator.image=base
USER root
COPY wheels/ %(folder)s/smdebug-emulator/wheels/
RUN XDG_CACHE_HOME=%(folder)s smdebug-emulator images build --runtime process %(names)s \\
 && cd %(folder)s/smdebug-emulator/venvs && rm -f *.lock \\
 && python3 -B -m rules_images.emulator.trimming --keep-bytecode */lib/python3*/site-packages \\
 && %(imports)s
FROM ${BASE}
COPY --from=built %(folder)s/smdebug-emulator/venvs %(folder)s/smdebug-emulator/venvs
ENV SMDEBUG_EMULATOR_ENVIRONMENTS=%(folder)s/smdebug-emulator
"""


def name_tag(tag: str) -> str:
    """Return the name of the emulator's image with a tag."""
    return f"{NAMESPACE}/{EMULATOR}:{tag}"


def list_tags() -> set[str]:
    """Return the names of the emulator's image with all tags."""
    return {name_tag(tag) for tag in TAGS}


def build_tag(
    api: docker.APIClient,
    tag: str,
    bare: str,
    cache: Path,
    run_build: Callable[[docker.APIClient, IO[bytes], str, dict[str, str], dict[str, str]], None],
    report: Callable[[str, str], None],
) -> bool:
    """Build the emulator's image with a tag if it is not up to date, and return whether it was built.

    Args:
        api: client of the engine.
        tag: one of ``TAGS``.
        bare: name of the image without environments, which is up to date.
        cache: folder for wheels.
        run_build: builds a context; takes the client, the context, the image's name, arguments and labels.
        report: called with the name of an image and a progress message.

    Raises:
        ContainerRuntimeError: pip cannot fetch the wheels, or the build failed.
    """
    name, found = name_tag(tag), api.images(bare)
    if not TAGS[tag]:
        is_new = not any(name in (image["RepoTags"] or ()) for image in found)
        api.tag(bare, f"{NAMESPACE}/{EMULATOR}", tag)
        return is_new
    definitions = ImageCatalogue().select(TAGS[tag])
    dockerfile = _DOCKERFILE % {
        "folder": _FOLDER,
        "names": " ".join(each.name for each in definitions),
        # A package that lacks what it needs fails the build, not a job.
        "imports": " && ".join(
            f"{each.name}-*/bin/python -c 'import {', '.join(each.warm_modules)}'" for each in definitions
        ),
    }
    locked = [read_requirements(each, IMAGE_PYTHON) for each in definitions]
    keys = [key_of_requirements(lines, IMAGE_PYTHON) for lines in locked]
    key = hash_parts([], found[0]["Id"], dockerfile, *keys)
    if any((image["Labels"] or {}).get(KEY_LABEL) == key for image in api.images(name)):
        return False
    contents: dict[str, Path | bytes] = {"Dockerfile": dockerfile.encode()}
    for definition, lines in zip(definitions, locked, strict=True):
        report(f"{EMULATOR}:{tag}", f"fetching wheels of {definition.name}")
        wheels = fetch_wheels(lines, cache)
        contents[f"wheels/{wheels.name}"] = wheels
    report(f"{EMULATOR}:{tag}", "installing environments")
    with tempfile.TemporaryFile() as context:
        write_context(context, contents)
        run_build(api, context, name, {"BASE": bare}, {KEY_LABEL: key})
    return True
