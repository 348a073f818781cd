"""User's container registry: images pushed once, pulled by each node."""

import threading
from collections.abc import Callable

import docker
import docker.auth

from container_runtime.docker.border import read_transfer, translated
from container_runtime.runtime import ContainerRuntimeError


class Registry:
    """Images below one prefix. Thread safe.

    Args:
        api: client of the manager's engine, which has the images.
        prefix: what the images' names begin with, such as ``registry.example.com/team``.
    """

    def __init__(self, api: docker.APIClient, prefix: str) -> None:
        self.prefix = prefix.rstrip("/")
        self._api = api
        self._pushed: dict[str, str] = {}
        self._lock = threading.Lock()

    def build_headers(self) -> dict[str, str]:
        """Build the headers by which an engine may ask the registry for what a service runs."""
        registry, _ = docker.auth.resolve_repository_name(f"{self.prefix}/any")
        header = docker.auth.get_config_header(self._api, registry)
        return {} if header is None else {"X-Registry-Auth": header.decode()}

    def push(self, image: str, say: Callable[[str], None] = lambda _text: None) -> str:
        """Bring an image of the manager's engine there, unless it has been; return by what name any engine finds it.

        The name ends with the image's digest: whoever pulls it gets these bytes or nothing.

        Args:
            image: its id.
            say: told of it.

        Raises:
            ContainerRuntimeError: the registry does not answer, or refuses.
        """
        with self._lock:
            if image not in self._pushed:
                self._pushed[image] = self._push(image, say)
            return self._pushed[image]

    def _push(self, image: str, say: Callable[[str], None]) -> str:
        with translated(f"push the image {image} to {self.prefix}"):
            own = self._api.inspect_image(image)
            # Of a name such as smdebug-emulator/pytorch-training:latest, as it is in the registry afterwards.
            name = (own["RepoTags"] or ["image:latest"])[0].rpartition(":")[0].rpartition("/")[2]
            repository, tag = f"{self.prefix}/{name}", image.removeprefix("sha256:")[:12]
            say(f"pushing the image to {repository}")
            self._api.tag(image, repository, tag)
            digest = ""
            for line in read_transfer(self._api.push(repository, tag, stream=True, decode=True), f"push {repository}"):
                digest = line.get("aux", {}).get("Digest", digest)
        if not digest:
            raise ContainerRuntimeError(f"The registry did not return the digest of {repository}:{tag}.")
        return f"{repository}@{digest}"

    def pull(self, node: docker.APIClient, image: str, say: Callable[[str], None]) -> None:
        """Let a node's engine pull an image of the manager's.

        Raises:
            ContainerRuntimeError: the registry does not answer it, or refuses.
        """
        reference = self.push(image, say)
        repository, _, digest = reference.partition("@")
        with translated(f"pull {reference}"):
            for _ in read_transfer(node.pull(repository, digest, stream=True, decode=True), f"pull {reference}"):
                pass
