"""Generation of the images' lock files with uv (``make lock``)."""

import argparse
import hashlib
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from container_runtime.images.architecture import ARCHITECTURES, find_architecture
from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.images.lock_files import (
    CPU_ONLY_MARK,
    INSTALLER_MARK,
    PLACEHOLDER_MARK,
    build_header,
    build_size_line,
    locate_lock,
)
from container_runtime.images.wheelhouse import FOR_GPUS, download
from container_runtime.runtime import WheelhouseError

PYTHONS = ("3.11", "3.12", "3.13")
"""Python versions of the lock files. For others pip chooses versions."""

_INSTALLERS = ("pip", "uv")
_UV = ("-m", "uv", "--no-config", "pip", "compile", "--quiet", "--format", "pylock.toml")
# The package whose CPU-only wheels have the version suffix ``+cpu``. They are on PyTorch's own index.
_CPU_ONLY = "torch"
_WHEEL = re.compile(r"[^-]+-[^-]+(-\d[^-]*)?-(?P<python>[^-]+)-(?P<abi>[^-]+)-(?P<platform>[^-]+)\.whl")


def write_lock(definition: ImageDefinition, python: str, architecture: str) -> bool:
    """Choose the newest compatible versions and write their lock file. Return False if there is no solution.

    Raises:
        WheelhouseError: uv fails for another reason.
    """
    packages = _resolve(definition.installed, python, architecture)
    if packages is None:
        return False
    if missing := [each["name"] for each in packages if not _list_files(each, python, architecture)]:
        print(f"  there is no wheel of {', '.join(missing)} for {architecture}")  # noqa: T201
        return False
    smaller = [
        line
        for package in packages
        if package["name"] == _CPU_ONLY and architecture == find_architecture()
        for line in _build_cpu_only_lines(package["version"], python)
    ]
    left_out = [] if smaller else [package for package in packages if FOR_GPUS.match(package["name"])]
    packages = [package for package in packages if package not in left_out]
    # The installers have to be trusted as well, so they are locked too.
    names = [name for name in _INSTALLERS if not any(package["name"] == name for package in packages)]
    installers = _resolve(names, python, architecture) or []
    size = sum(_measure(package, python, architecture) for package in (*packages, *installers))
    lines = [
        build_header(definition),
        build_size_line(size),
        *(_build_line(package, python, architecture) for package in packages),
        *smaller,
        *(f"{package['name']}=={package['version']}{PLACEHOLDER_MARK}" for package in left_out),
        *(_build_line(package, python, architecture) + INSTALLER_MARK for package in installers),
    ]
    locate_lock(definition, python, architecture).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return True


def _resolve(requirements: Sequence[str], python: str, architecture: str) -> list[dict[str, Any]] | None:
    """Return the packages that uv chooses; None if there is no solution."""
    with tempfile.TemporaryDirectory() as temporary:
        required, locked = Path(temporary, "requirements.in"), Path(temporary, "pylock.toml")
        required.write_text("\n".join(requirements), encoding="utf-8")
        command = [sys.executable, *_UV, "--python-version", python, "--python-platform"]
        command.append(f"{architecture}-manylinux_2_36")
        done = subprocess.run(
            [*command, str(required), "--output-file", str(locked)], check=False, capture_output=True, text=True
        )
        if "No solution found" in done.stderr:
            print(done.stderr.strip())  # noqa: T201
            return None
        if done.returncode:
            raise WheelhouseError(f"uv failed:\n{done.stderr.strip()}")
        packages: list[dict[str, Any]] = tomllib.loads(locked.read_text(encoding="utf-8"))["packages"]
        return packages


def _list_files(package: dict[str, Any], python: str, architecture: str) -> list[dict[str, Any]]:
    """Return the wheels that fit; of packages that are built here, the source."""
    wheels = package.get("wheels", ())
    files = [wheel for wheel in wheels if _fits(wheel["url"].rpartition("/")[2], python, architecture)]
    return files or ([] if wheels or "sdist" not in package else [package["sdist"]])


def _measure(package: dict[str, Any], python: str, architecture: str) -> int:
    """Return the size of the largest of the files, one of which is fetched; 0 if the index does not say it."""
    return max(int(file.get("size", 0)) for file in _list_files(package, python, architecture))


def _build_line(package: dict[str, Any], python: str, architecture: str) -> str:
    hashes = [file["hashes"]["sha256"] for file in _list_files(package, python, architecture)]
    return " ".join([f"{package['name']}=={package['version']}", *(f"--hash=sha256:{each}" for each in sorted(hashes))])


def _fits(name: str, python: str, architecture: str) -> bool:
    """Return whether a wheel is for this Python version and architecture, on Linux with glibc."""
    found = _WHEEL.fullmatch(name)
    if found is None:
        return False
    tags, minor = {f"{each}{python.replace('.', '')}" for each in ("cp", "py")} | {"py3"}, int(python.partition(".")[2])
    pythons = found["python"].split(".")
    older = [each for each in pythons if re.fullmatch(r"cp3\d+", each) and int(each[3:]) <= minor]
    if not (tags.intersection(pythons) or (found["abi"] == "abi3" and older)):
        return False
    system = found["platform"]
    return system == "any" or ("manylinux" in system and system.endswith(architecture))


def _build_cpu_only_lines(version: str, python: str) -> Iterator[str]:
    """Yield the line of the CPU-only wheel, if pip's package indexes have one."""
    requirement = f"{_CPU_ONLY}=={version}+cpu"
    with tempfile.TemporaryDirectory() as temporary:
        try:
            download([requirement], Path(temporary), python, "--no-deps")
        except WheelhouseError:
            print(f"  CPU-only torch is not on pip's indexes for Python {python}: only the other is locked")  # noqa: T201
        for wheel in Path(temporary).glob("*.whl"):
            with wheel.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            yield f"{requirement} --hash=sha256:{digest}{CPU_ONLY_MARK}"


def main(arguments: Sequence[str]) -> None:
    """Write the lock files of the named images, or of all; those of one architecture with ``--architecture NAME``."""
    parser = argparse.ArgumentParser(prog="python -m container_runtime.images.lock_making", description=main.__doc__)
    parser.add_argument("--architecture", choices=ARCHITECTURES, action="append")
    parser.add_argument("names", nargs="*", metavar="IMAGE")
    given = parser.parse_args(arguments)
    names = given.names
    definitions = [found for found in ImageCatalogue() if found.requirements]
    for definition in definitions:
        if names and definition.name not in names:
            continue
        for python in (definition.python,) if definition.python else PYTHONS:
            for architecture in given.architecture or ARCHITECTURES:
                made = write_lock(definition, python, architecture)
                said = "locked" if made else "its requirements have no solution"
                print(f"{definition.name}, Python {python}, {architecture}: {said}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
