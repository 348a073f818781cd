"""Container folders here and on a node whose agent runs in this process."""

import os
from collections.abc import Callable
from pathlib import Path

from container_runtime.spec import Mount
from container_runtime.swarm.agent_key import keep_key
from container_runtime.swarm.carriers import Carriers
from container_runtime.swarm.file_transfer.carried_folders import list_carried, list_volumes
from tests.integration.container_runtime.swarm.test_proxies import NodeAgent

NAME = "smd-one"
USER = (os.getuid() or 1000, os.getgid() or 1000)


class Setup:
    """A container's two folders here, and their volumes on a node: one is its own, one it may only read."""

    def __init__(self, folder: Path) -> None:
        self.here = folder / "here"
        self.code = folder / "code"
        for each in (self.here, self.code):
            each.mkdir()
        mounts = [Mount(self.here, "/opt/ml"), Mount(self.code, "/var/task", read_only=True)]
        self.folders = list_carried(NAME, mounts, mounts)
        self.volumes = folder / "volumes"
        self.volumes.mkdir()
        for name in list_volumes(NAME, self.folders):
            (self.volumes / name / "_data").mkdir(parents=True)
        self.there, self.code_there, self.begin = (
            self.volumes / name / "_data" for name in list_volumes(NAME, self.folders)
        )
        self.key = keep_key(folder / "key")
        self.agent = NodeAgent(self.key, self.volumes)
        self.made: list[Carriers] = []
        self.killed: list[str] = []

    def make(self) -> Carriers:
        find_agent, kill = (lambda _node: ("127.0.0.1", self.agent.port)), self.killed.append
        self.made.append(Carriers(find_agent, self.key, USER, kill=kill))
        return self.made[-1]

    def close(self) -> None:
        for each in self.made:
            each.shut()
        self.agent.close()


def write(path: Path, text: str) -> Path:
    """Write as the writers of tensors do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_name(path.name + ".tmp").write_text(text)
    path.with_name(path.name + ".tmp").rename(path)
    return path


def holds(path: Path, text: str) -> Callable[[], bool]:
    return lambda: path.is_file() and path.read_text() == text


def list_all(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))
