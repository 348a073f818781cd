"""Containers as local process trees, each under a supervisor.

This is not a sandbox. A process has access to the host's files and network with the permissions of the user who started
the emulator. It has its own environment variables, home directory and temporary folder, and no process of the tree is
left when it ends. If the kernel grants namespaces (``namespaces.py``), the process sees its mounts at their targets,
has a private /tmp, and can be isolated from the network. Otherwise it sees mounts at their sources, and
SAGEMAKER_BASE_DIR names the folder for /opt/ml.

Each container has a folder in the back end's state folder. The folder has the name of the container, and the supervisor
writes its content. So a runtime that is later created for the same state folder finds every container with its log and
exit code.
"""

import fcntl
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from socket import socket
from typing import Any

from container_runtime.gpus import list_gpus
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.installation import locate_cache
from container_runtime.process.environment_start import PREPARING
from container_runtime.process.loopback_network import LoopbackNetworks
from container_runtime.process.namespace_grant import NamespaceGrant, probe_namespaces
from container_runtime.process.process_builder import ProcessBuilder
from container_runtime.process.process_tree import ProcessTreeMeter
from container_runtime.process.supervised import has_started, is_running, kill_leftovers, read_json
from container_runtime.process.supervisors import Supervisors
from container_runtime.process.warm_interpreters import WarmInterpreters, WarmOptions
from container_runtime.runtime import (
    Container,
    ContainerNotFoundError,
    ContainerRuntimeError,
    ContainerStartError,
    Exit,
    FoundNetwork,
    LogLine,
    Network,
    OneMachine,
    ResolvedImage,
    Usage,
)
from container_runtime.spec import ContainerSpec, Mount

_STARTING = ".starting-"
_SAFE_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")


class LocalProcesses(OneMachine):
    """The process back end.

    Args:
        state_folder: folder that holds the containers' folders; created if missing. Only one back end may use it.
        catalogue: the images that can run. The default is the images of ``rules_images/``.
        cache: folder for the virtual environments of images. The default is the cache of this installation.
        grant: the namespaces to use. The default is all that the kernel grants.
        warm: how warm interpreters are kept. The default is to have none.

    Raises:
        ContainerRuntimeError: the state folder cannot be written.
    """

    name = "process"

    @cached_property
    def hands_gpus(self) -> bool:
        """Whether this machine has GPUs: its processes see them all. They are looked up once."""
        return bool(list_gpus())

    host_address = "127.0.0.1"

    def __init__(
        self,
        state_folder: Path,
        catalogue: ImageCatalogue | None = None,
        cache: Path | None = None,
        grant: NamespaceGrant | None = None,
        warm: WarmOptions | None = None,
    ) -> None:
        self._folder = state_folder
        self.grant = grant or probe_namespaces()
        cache = cache or locate_cache()
        self._catalogue = catalogue or ImageCatalogue()
        self._networks = LoopbackNetworks(state_folder.with_name(f"{state_folder.name}-networks"))
        self._builder = ProcessBuilder(self._catalogue, cache, self.grant, self._networks)
        self._supervisors = Supervisors()
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._sweep()
            self._warm = WarmInterpreters(state_folder.with_name(f"{state_folder.name}-warm"), cache, warm)
        except OSError as exc:
            raise ContainerRuntimeError(f"The state folder {state_folder} cannot be used: {exc.strerror}.") from exc
        self._warm.start_ahead(self._catalogue)

    def resolve_image(
        self,
        image: str,
        say: Callable[[str], None] = lambda _text: None,  # noqa: ARG002 - the container itself builds, and says so
    ) -> ResolvedImage:
        definition, substitution = self._builder.find_definition(image)
        return ResolvedImage(image, definition.name, definition.note, substitution)

    def describe_substitution(self, image: str) -> str | None:
        return self._catalogue.describe_substitution(image)

    def has_image(self, image: str, *, exactly: bool = True) -> bool:
        return not exactly and self._catalogue.has(image)  # nothing can be loaded

    def path_in_container(self, mount: Mount, relative: str) -> str:
        """See ``ContainerRuntime``. This is the path on the host if the kernel grants no mounts."""
        return mount.find_inside(relative) if self.grant.mounts else str(mount.source / relative)

    def keep_ready(self, spec: ContainerSpec, seconds: float | None = None) -> bool:
        found = self._catalogue.find(spec.image)
        return found is not None and self._warm.keep(found[0], seconds)

    def is_ready(self, spec: ContainerSpec) -> bool:
        found = self._catalogue.find(spec.image)
        return found is not None and self._warm.has_ready(found[0])

    def is_preparing(self, container_id: str) -> bool:
        return Path(read_json(self._folder_of(container_id) / "container.json")["scratch"], PREPARING).exists()

    def start(self, spec: ContainerSpec) -> str:
        definition, _ = self._builder.find_definition(spec.image)
        for mount in spec.mounts:
            if not mount.source.is_dir():
                raise ContainerStartError(f"Container {spec.name}: the folder to mount, {mount.source}, is not there.")
        if spec.network is not None and not self._networks.exists(spec.network):
            raise ContainerStartError(f"Container {spec.name}: there is no network {spec.network}.")
        if spec.isolated and not self.grant.network:
            raise ContainerStartError(
                f"Container {spec.name} is to have no network, and the kernel of this machine does not let a local "
                f"process be without ({self.grant.refusal}). Run the emulator with --runtime docker, or do without "
                "the isolation."
            )
        folder = Path(tempfile.mkdtemp(prefix=_STARTING, dir=self._folder))
        # Without mounts the process sees the path on the host. Keep it short: a Unix socket's address holds only about
        # a hundred characters.
        given = spec.scratch if self.grant.mounts else None
        scratch = given or _name_scratch(folder)
        scratch.mkdir(mode=0o700, parents=True, exist_ok=given is not None)
        try:
            process = {
                **self._builder.build(spec, definition, scratch),
                "cwd": str(scratch / "home"),
                "memory_bytes": spec.memory_bytes,
                "niceness": spec.niceness,
            }
            record = {
                "name": spec.name,
                "labels": dict(spec.labels),
                "scratch": str(scratch),
                "network": spec.network,
            }
            (folder / "process.json").write_text(json.dumps(process), encoding="utf-8")
            (folder / "container.json").write_text(json.dumps(record), encoding="utf-8")
            (scratch / "home").mkdir()
            (scratch / "tmp").mkdir()
            with (folder / "lock").open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                folder = self._give_name(folder, spec.name)
                pid, error = self._warm.start_supervisor(
                    definition, process["argv"], spec.environment, folder, lock.fileno()
                )
            if error:
                if pid is not None:
                    os.waitpid(pid, 0)
                raise ContainerStartError(  # noqa: TRY301 - the clean-up below is for this one, too
                    f"Container {spec.name} ({spec.image}) did not start: {error}"
                )
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        if pid is not None:
            self._supervisors.add(pid)
        return spec.name

    def logs(self, container_id: str) -> Iterator[LogLine]:
        return self._supervisors.follow_log(self._folder_of(container_id))

    def wait(self, container_id: str, timeout: float | None = None) -> Exit | None:
        return self._supervisors.wait(self._folder_of(container_id), timeout)

    def read_usage(self, container_id: str) -> Usage | None:
        meter = self.open_meter(container_id)
        load = None if meter is None else meter.read()
        return None if load is None else Usage(load.cpu_seconds, load.memory_bytes)

    def open_meter(self, container_id: str) -> ProcessTreeMeter | None:
        folder = self._folder_of(container_id)
        return ProcessTreeMeter(folder) if is_running(folder) else None

    def stop(self, container_id: str, grace_seconds: float) -> None:
        self._supervisors.stop(self._folder_of(container_id), grace_seconds)

    def remove(self, container_id: str) -> None:
        try:
            folder = self._folder_of(container_id)
            scratch = Path(read_json(folder / "container.json")["scratch"])
            self._supervisors.kill(folder)
        except (ContainerNotFoundError, FileNotFoundError):
            return
        shutil.rmtree(scratch, ignore_errors=True)
        # Rename the folder first: a partly deleted folder must not look like a container.
        gone = folder.with_name(f"{_STARTING}gone-{folder.name}-{time.time_ns()}")
        try:
            folder.rename(gone)
        except FileNotFoundError:
            return  # another thread removes it
        shutil.rmtree(gone, ignore_errors=True)

    def find(self, labels: Mapping[str, str]) -> list[Container]:
        return [
            Container(id=folder.name, name=folder.name, labels=record["labels"], running=is_running(folder))
            for folder, record in _read_records(self._folder)
            if labels.items() <= record["labels"].items()
        ]

    def create_network(
        self, name: str, hosts: Sequence[str], labels: Mapping[str, str], *, isolated: bool = False
    ) -> Network:
        """See ``ContainerRuntime``. Each host gets a loopback address."""
        if isolated and not self.grant.network:
            raise ContainerStartError(
                f"The {len(hosts)} hosts are to reach each other and nothing else, and the kernel of this machine does "
                f"not let local processes meet elsewhere than on its own network ({self.grant.refusal}). Run the "
                "emulator with --runtime docker, or do without the isolation."
            )
        return self._networks.create(name, hosts, labels, isolated=isolated)

    def find_networks(self, labels: Mapping[str, str]) -> list[FoundNetwork]:
        return self._networks.find(labels)

    def remove_network(self, name: str) -> None:
        # A start that was killed halfway has no container on the network; `_sweep` removes its folder later.
        if any(record.get("network") == name for _, record in _read_records(self._folder)):
            raise ContainerRuntimeError(f"The network {name} has containers on it: remove them first.")
        self._networks.remove(name)

    def offer(self, port: int, take: Callable[[socket], None]) -> None:
        """Do nothing: local processes reach every server that listens on this machine."""

    def close(self) -> None:
        """End the warm interpreters. Supervisors belong to their containers."""
        self._warm.close()

    def _folder_of(self, container_id: str) -> Path:
        folder = self._folder / container_id
        if _SAFE_ID.fullmatch(container_id) is None or not folder.is_dir():
            raise ContainerNotFoundError(f"No container {container_id!r} in {self._folder}.")
        return folder

    def _give_name(self, folder: Path, name: str) -> Path:
        try:
            return folder.rename(self._folder / name)
        except OSError as exc:
            raise ContainerStartError(f"Container name {name!r} is taken; remove that container first.") from exc

    def _sweep(self) -> None:
        """Remove what a runtime left that was killed during a start or a removal."""
        for folder in self._folder.iterdir():
            if folder.name.startswith(_STARTING):
                with suppress(FileNotFoundError):  # another runtime has just removed it, or given it its name
                    if time.time() - folder.stat().st_mtime > 60:
                        shutil.rmtree(_name_scratch(folder), ignore_errors=True)
                        shutil.rmtree(folder, ignore_errors=True)
            elif not has_started(folder) and not is_running(folder):
                self.remove(folder.name)
            else:
                kill_leftovers(folder)


def _name_scratch(starting: Path) -> Path:
    """Return the folder for home and temporary files of a starting container. It can be found if the start fails."""
    return Path(tempfile.gettempdir(), f"smdebug-emulator-{starting.name.removeprefix(_STARTING)}")


def _read_records(containers: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Read the folder and record of each container, without those that are being started or removed."""
    for folder in sorted(containers.iterdir()):
        if folder.name.startswith(_STARTING):
            continue
        try:
            record = read_json(folder / "container.json")
        except FileNotFoundError:
            continue  # removed in the meantime
        yield folder, record
