"""Wheels linked to CUDA, adapted to a CPU-only PyTorch.

PyPI has torchvision and torchaudio only as GPU builds. These builds also contain all of their CPU code.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from typing import TYPE_CHECKING

from container_runtime.images.shared_objects import unlink_libraries
from container_runtime.runtime import WheelhouseError

if TYPE_CHECKING:
    from pathlib import Path

CPU_ONLY_PACKAGES = ("torchaudio", "torchvision")
CPU_ONLY = "+cpu"
"""Version suffix of CPU-only packages, as on PyTorch's own package index."""

FITTING = "1"
"""Version of the procedure. Increase it when wheels are adapted in a different way."""

# The libraries to unlink. Libraries that a wheel itself contains have other names and stay.
_CUDA_LIBRARIES = re.compile(r"lib(cudart|c10_cuda|torch_cuda)\.so(\.\d+)?")
_NAMES = re.compile("cuda", re.IGNORECASE)
_LIBRARY = re.compile(r".*\.so(\.\d+)*")


def fit_wheels(folder: Path) -> dict[str, Path]:
    """Replace the GPU wheels in a folder with adapted ones, if the folder's PyTorch is CPU-only.

    Returns:
        The adapted wheels, by package name.

    Raises:
        WheelhouseError: a wheel cannot be adapted.
    """
    if not any(folder.glob(f"torch-*{CPU_ONLY}-*.whl")):
        return {}
    wheels = {name: wheel for name in CPU_ONLY_PACKAGES for wheel in folder.glob(f"{name}-*.whl")}
    fitted = {name: fit_wheel(wheel) for name, wheel in wheels.items() if CPU_ONLY not in wheel.name}
    for name in fitted:
        wheels[name].unlink()
    return fitted


def fit_wheel(wheel: Path) -> Path:
    """Write a copy of a wheel that needs no CUDA libraries next to the wheel, and return its path.

    The copy has the same version with the suffix ``+cpu``. Its files are not compressed, so it has the same bytes on
    every machine.

    Raises:
        WheelhouseError: the wheel has a library that cannot be adapted.
    """
    name, version, tags = wheel.name.split("-", 2)
    old, new = (f"{name}-{each}.dist-info/" for each in (version, version + CPU_ONLY))
    fitted = wheel.with_name(f"{name}-{version}{CPU_ONLY}-{tags}")
    records = []
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(fitted, "w") as target:
        for member in source.infolist():
            path, content = member.filename, source.read(member)
            if path == f"{old}RECORD":
                continue
            if _LIBRARY.fullmatch(path):
                try:
                    content = unlink_libraries(content, _CUDA_LIBRARIES, _NAMES)
                except WheelhouseError as error:
                    raise WheelhouseError(f"{path} of {wheel.name} cannot be fitted to PyTorch: {error}") from error
            elif path == f"{old}METADATA":
                line = f"\nVersion: {version}\n"
                content = content.replace(line.encode(), f"{line.rstrip()}{CPU_ONLY}\n".encode(), 1)
            path = path.replace(old, new, 1) if path.startswith(old) else path
            _write(target, path, content, member.external_attr)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            records.append(f"{path},sha256={digest},{len(content)}\n")
        _write(target, f"{new}RECORD", "".join([*records, f"{new}RECORD,,\n"]).encode(), 0o644 << 16)
    return fitted


def _write(target: zipfile.ZipFile, path: str, content: bytes, attributes: int) -> None:
    member = zipfile.ZipInfo(path)  # of 1980
    member.external_attr = attributes
    member.create_system = 3  # Unix, of which the attributes are
    target.writestr(member, content)
