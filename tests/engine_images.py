"""Images of the machine's own engine for engines of tests: copied, or shared.

``docker save`` and ``docker load`` of the smallest image take ten processor seconds for each engine. An engine that
starts on a folder in which an image is described, and in which its layers are mounted, has it at once.
"""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import docker.errors

from container_runtime.docker.daemon import describe_engine

_DRIVER = "overlay2"
_SHORT = 26  # letters of a layer's second, short name, with which the engine keeps the options of a mount short


@dataclass(frozen=True, slots=True)
class _Layer:
    """One layer.

    Attributes:
        chain: digest of it and of all below it.
        folder: name of the folder of its files.
    """

    chain: str
    folder: str

    @property
    def short(self) -> str:
        return hashlib.sha256(self.folder.encode()).hexdigest()[:_SHORT].upper()


def load_images(names: Sequence[str], socket: Path) -> None:
    """Copy images to the engine with this socket, unless they are there."""
    with closing(docker.from_env()) as client, closing(docker.APIClient(f"unix://{socket}", timeout=400)) as api:
        wanted = {name: str(client.api.inspect_image(name)["Id"]) for name in names}
        there = {tag: str(each["Id"]) for each in api.images() for tag in each["RepoTags"] or ()}
    lacking = [name for name, found in wanted.items() if there.get(name) != found]
    if not lacking:
        return
    with subprocess.Popen(["docker", "save", *lacking], stdout=subprocess.PIPE) as save:
        assert save.stdout is not None
        load = ["docker", "-H", f"unix://{socket}", "load", "--quiet"]
        subprocess.run(load, stdin=save.stdout, check=True, stdout=subprocess.DEVNULL)
    assert save.returncode == 0


def link_image(name: str, data: Path) -> list[tuple[Path, Path]]:
    """Describe an image of the machine's engine in the folder of an engine that is not running.

    The layers stay where they are. An image that is removed there meanwhile is gone from here, too.

    Args:
        name: of the image, with its tag.
        data: the folder (``--data-root``).

    Returns:
        The layers' folders, and where each is to be mounted, read only. None where there is no such image, or where
        this process does not see the engine's files: then it is to be loaded.
    """
    if describe_engine() is None:
        return []
    with closing(docker.from_env()) as client:
        root = Path(client.info()["DockerRootDir"])
        try:
            found: dict[str, Any] = client.api.inspect_image(name)
        except docker.errors.ImageNotFound:
            return []
    described, layers = root / "image" / _DRIVER, root / _DRIVER
    content = Path("imagedb/content/sha256", found["Id"].removeprefix("sha256:"))
    if found["GraphDriver"]["Name"] != _DRIVER or not (described / content).is_file():
        return []
    chains: list[_Layer] = []
    mounts = []
    for layer in _list_layers(described, found["RootFS"]["Layers"]):
        own = data / _DRIVER / layer.folder
        (own / "diff").mkdir(parents=True, exist_ok=True)
        (own / "link").write_text(layer.short)
        (own / "committed").touch()
        if chains:
            (own / "work").mkdir(exist_ok=True)
            (own / "lower").write_text(":".join(f"l/{each.short}" for each in reversed(chains)))
        short = data / _DRIVER / "l" / layer.short
        short.parent.mkdir(exist_ok=True)
        if not short.is_symlink():
            short.symlink_to(f"../{layer.folder}/diff")
        place = Path("layerdb/sha256", layer.chain)
        shutil.copytree(described / place, data / "image" / _DRIVER / place, dirs_exist_ok=True)
        mounts.append((layers / layer.folder / "diff", own / "diff"))
        chains.append(layer)
    copied = data / "image" / _DRIVER / content
    copied.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(described / content, copied)
    names = data / "image" / _DRIVER / "repositories.json"
    if not names.exists():
        names.write_text(json.dumps({"Repositories": {name.rpartition(":")[0]: {name: found["Id"]}}}))
    return mounts


def _list_layers(described: Path, digests: list[str]) -> list[_Layer]:
    """List an image's layers, the lowest first."""
    layers: list[_Layer] = []
    for digest in digests:
        both = f"sha256:{layers[-1].chain} {digest}" if layers else ""
        chain = hashlib.sha256(both.encode()).hexdigest() if both else digest.removeprefix("sha256:")
        folder = (described / "layerdb" / "sha256" / chain / "cache-id").read_text()
        layers.append(_Layer(chain, folder))
    return layers
