"""Commands, variables and namespaces of local processes."""

import sys
from pathlib import Path
from typing import Any

from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.images.installation import ROOT
from container_runtime.images.own_packages import FOLDER, build_variables
from container_runtime.process.environment_start import find_program, is_script_of, wrap_start
from container_runtime.process.environments import lay_own_packages, locate_own_environment
from container_runtime.process.loopback_network import LoopbackNetworks
from container_runtime.process.namespace_grant import NamespaceGrant
from container_runtime.process.warm_interpreters import build_image_variables
from container_runtime.runtime import ContainerStartError, ImageNotFoundError
from container_runtime.spec import ContainerSpec, Mount

_OPT_ML = "/opt/ml"
_TMP = Path("/tmp")  # noqa: S108 - each process gets one of its own


class ProcessBuilder:
    """Makes of a container's spec the process that a supervisor starts.

    Args:
        catalogue: the images that can run.
        cache: folder with the virtual environments of images.
        grant: the namespaces to use.
        networks: the networks that isolated processes join.
    """

    def __init__(
        self, catalogue: ImageCatalogue, cache: Path, grant: NamespaceGrant, networks: LoopbackNetworks
    ) -> None:
        self._catalogue, self._cache, self._grant, self._networks = catalogue, cache, grant, networks

    def find_definition(self, image: str) -> tuple[ImageDefinition, str | None]:
        """Return the definition of an image, and what it is used in place of, if anything.

        Raises:
            ImageNotFoundError: local processes have no such image.
        """
        found = self._catalogue.find(image)
        if found is None:
            known = self._catalogue.describe_repositories(image)
            raise ImageNotFoundError(
                f"No image {image!r} for local processes, which jobs run as here: they have only those with these "
                f"repository names: {known} For any other image start a Docker engine (smdebug-emulator engine "
                "start), then the emulator again with --runtime docker."
            )
        return found

    def build(self, spec: ContainerSpec, definition: ImageDefinition, scratch: Path) -> dict[str, Any]:
        """Return the resolved command, the environment variables and the namespaces of the process."""
        own = locate_own_environment(definition, self._cache)
        python = Path(sys.executable) if own is None else own.python
        environment = self._build_environment(spec, definition, scratch, python.parent)
        argv = _build_argv(spec, definition)
        if own is not None and not own.is_complete:
            namespaces = self._build_namespaces(spec, scratch, own.folder)
            argv, environment = wrap_start(
                self._catalogue.folder, definition.name, argv, environment, self._cache, namespaces, scratch
            )
            return {"argv": argv, "environment": environment, "namespaces": None}
        lay_own_packages(scratch, own)
        program = find_program(argv[0], str(python), environment["PATH"])
        if program is None:
            raise ContainerStartError(
                f"Container {spec.name} ({spec.image}): {argv[0]!r} is not an executable file on "
                f"PATH={environment['PATH']}."
            )
        namespaces = self._build_namespaces(spec, scratch, python.parent, Path(program).parent)
        module = definition.commands.get(Path(program).name)
        if module is not None and is_script_of(Path(program), python):
            # -P: a command, unlike a module, does not import modules from the current folder.
            start = [str(python), "-P", "-m", module]
        else:
            start = [program]
        return {"argv": [*start, *argv[1:]], "environment": environment, "namespaces": namespaces}

    def _build_environment(
        self, spec: ContainerSpec, definition: ImageDefinition, scratch: Path, programs: Path
    ) -> dict[str, str]:
        """Return all environment variables of the process. None are inherited from the emulator."""
        environment = {
            **build_image_variables(definition, programs),
            "HOME": str(scratch / "home"),
            "TMPDIR": str(_TMP if spec.scratch and self._grant.mounts else scratch / "tmp"),
            **spec.environment,
            **build_variables(str(scratch / FOLDER), spec.environment),
        }
        for mount in spec.mounts:
            if mount.target.rstrip("/") == _OPT_ML and not self._grant.mounts:
                environment["SAGEMAKER_BASE_DIR"] = str(mount.source)
        return environment

    def _build_namespaces(self, spec: ContainerSpec, scratch: Path, *programs: Path) -> dict[str, Any] | None:
        """Return the arguments of ``namespaces.enter``, or None if the kernel grants no namespaces.

        Folders of the host that the process needs but that a mount would hide are mounted at their own path: its home
        directory, programs and packages.
        """
        if not self._grant.mounts:
            return None
        needed = (scratch, *programs, Path(sys.prefix), Path(sys.base_prefix), ROOT, self._cache)
        hidden = {_TMP, *(Path(mount.target) for mount in spec.mounts)}
        kept = {path for path in map(Path.resolve, needed) if path.is_dir() and not hidden.isdisjoint(path.parents)}
        mounts = [Mount(scratch / "tmp", str(_TMP)), *(Mount(path, str(path)) for path in kept), *spec.mounts]
        listed = [(str(mount.source), mount.target, mount.read_only) for mount in mounts]
        holder = self._networks.find_holder(spec.network) if spec.isolated and spec.network is not None else None
        return {"mounts": listed, "isolated": spec.isolated, "holder": holder}


def _build_argv(spec: ContainerSpec, definition: ImageDefinition) -> list[str]:
    entrypoint = definition.entrypoint if spec.entrypoint is None else spec.entrypoint
    argv = [*entrypoint, *spec.command]
    if not argv:
        raise ContainerStartError(f"Container {spec.name}: image {spec.image} has no entry point; give a command.")
    return argv
