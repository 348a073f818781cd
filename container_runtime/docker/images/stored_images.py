"""Images of this project that the Docker engine holds, and their removal."""

from contextlib import closing
from typing import NamedTuple

import docker.errors

from container_runtime.docker.border import connect, translated
from container_runtime.docker.images.image_build import plan_builds
from container_runtime.images.catalogue import IMAGE_LABEL, KEY_LABEL, ImageCatalogue
from container_runtime.runtime import ContainerRuntimeError

_CONFLICT = 409


class StoredImage(NamedTuple):
    """An image on the engine.

    Attributes:
        reference: its name, or its id if it has none.
        image: the name of the image definition; ``base`` for a base image with requirements.
        is_outdated: whether nothing uses it any more.
        is_stale: whether jobs run in it, but a build would make it again.
        size: in bytes. Images share layers, so that the sum of several is more than they take.
    """

    reference: str
    image: str
    is_outdated: bool
    is_stale: bool
    size: int


def list_images() -> list[StoredImage]:
    """List this project's images, the largest first.

    Raises:
        EngineUnavailableError: no engine answers.
    """
    builds = plan_builds(ImageCatalogue())
    keys = {build.name: build.key for build in builds}
    bases = {name for build in builds for name in build.bases}
    found = []
    with closing(connect()) as api, translated("list images"):
        for image in api.images(filters={"label": IMAGE_LABEL}):
            labels = image["Labels"]
            names = [name for name in image["RepoTags"] or () if name != "<none>:<none>"]
            for name in names or [image["Id"]]:
                is_used = name in bases or name in keys
                is_stale = name in keys and keys[name] != labels.get(KEY_LABEL)
                found.append(StoredImage(name, labels[IMAGE_LABEL], not is_used, is_stale, int(image["Size"])))
    return sorted(found, key=lambda each: -each.size)


def remove_image(stored: StoredImage) -> bool:
    """Remove an image; return whether it was removed, which it is not while another image is made of it.

    Raises:
        ContainerRuntimeError: a container uses it.
        EngineUnavailableError: the engine does not answer.
    """
    with closing(connect()) as api, translated(f"remove image {stored.reference}"):
        try:
            api.remove_image(stored.reference)
        except docker.errors.ImageNotFound:
            return False
        except docker.errors.APIError as exc:
            if exc.status_code != _CONFLICT:
                raise
            if "dependent child" in str(exc.explanation):
                return False
            raise ContainerRuntimeError(
                f"The image {stored.reference} is used by a container: stop its job first. ({exc.explanation})"
            ) from exc
    return True
