"""First program of a container whose virtual environment is not built yet.

It builds the environment, reports the progress in the container's log, and then becomes the container's command. It
runs as the container's process, so the emulator stops it, limits it and finds it like any other container, and does not
wait for the build.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.installation import ROOT
from container_runtime.process.environments import build_environment, lay_own_packages
from container_runtime.process.namespaces import enter
from container_runtime.runtime import ContainerRuntimeError

PREPARING = "preparing"
"""Name of a file in a container's scratch folder, until its command begins."""

# The emulator's environment variables that configure pip are passed in this variable. The container's command does not
# get it.
_BUILDER_ENVIRONMENT = "SMDEBUG_EMULATOR_BUILDER_ENVIRONMENT"
_FOR_PIP = re.compile(r"PATH|HOME|TMPDIR|NETRC|PIP_.*|XDG_.*|SSL_CERT_.*|\w*_CA_BUNDLE|\w+_PROXY", re.IGNORECASE)
_PYTHONS = frozenset({"python", "python3"})


def find_program(name: str, python: str, path: str) -> str | None:
    """Return the file to run for a command's first word. ``python`` is always the interpreter of the environment."""
    return python if name in _PYTHONS else shutil.which(name, path=path)


def is_script_of(program: Path, python: Path) -> bool:
    """Return whether the first line of a file names an interpreter next to ``python``, as in commands pip installs."""
    with program.open("rb") as file:
        line = file.readline()
    return line.startswith(b"#!") and Path(os.fsdecode(line[2:].strip())).parent == python.parent


def wrap_start(
    definitions: Path,
    image: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    cache: Path,
    namespaces: Mapping[str, Any] | None,
    scratch: Path,
) -> tuple[list[str], dict[str, str]]:
    """Return argv and environment of a process that builds the image's environment, then becomes ``argv``.

    The process enters ``namespaces`` after the build, because pip needs a network and the command may be isolated.
    """
    # The process runs in a folder of the container and does not inherit this process's import path.
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from {__name__} import main; main()"
    for_pip = {name: value for name, value in os.environ.items() if _FOR_PIP.fullmatch(name)}
    command = [sys.executable, "-I", "-c", code, str(definitions), image, str(cache), json.dumps(namespaces)]
    command += [str(scratch), *argv]
    (scratch / PREPARING).touch()
    return command, {**environment, _BUILDER_ENVIRONMENT: json.dumps(for_pip)}


def main() -> None:
    """Build the environment, then become the command. Exit with 1 if the build fails, 127 if there is no program."""
    folder, image, cache, namespaces, scratch, *argv = sys.argv[1:]
    builder_environment = json.loads(os.environ.pop(_BUILDER_ENVIRONMENT))
    container_environment = dict(os.environ)
    os.environ.clear()
    os.environ.update(builder_environment)
    definition = next(found for found in ImageCatalogue(Path(folder)) if found.name == image)
    try:
        environment = build_environment(definition, Path(cache), _say, compiled=False)
        lay_own_packages(Path(scratch), environment)
    except ContainerRuntimeError as exc:
        _say(f"the environment of {image} cannot be built: {exc}")
        sys.exit(1)
    program = find_program(argv[0], str(environment.python), container_environment["PATH"])
    if program is None:
        _say(f"{argv[0]!r} is not an executable file on PATH={container_environment['PATH']}.")
        sys.exit(127)
    Path(scratch, PREPARING).unlink(missing_ok=True)
    if (entered := json.loads(namespaces)) is not None:
        enter(**entered)
    os.execve(program, [program, *argv[1:]], container_environment)  # noqa: S606 - no shell is wanted


def _say(text: str) -> None:
    print(f"smdebug-emulator: {text}", flush=True)  # noqa: T201 - it is the container's log
