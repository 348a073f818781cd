"""Wheels linked to CUDA, adapted to a CPU-only PyTorch.

torchvision and torchaudio are on PyPI as builds for GPUs alone. All that they compute on the processor is in them.
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
"""At the end of the version of what is for the processor alone, as PyTorch's own index has it."""

FITTING = "1"
"""To be raised when wheels are fitted in another way."""

# By these names; what a wheel brings has others, and stays.
_CUDA_LIBRARIES = re.compile(r"lib(cudart|c10_cuda|torch_cuda)\.so(\.\d+)?")
_NAMES = re.compile("cuda", re.IGNORECASE)
_LIBRARY = re.compile(r".*\.so(\.\d+)*")


def fit_wheels(folder: Path) -> dict[str, Path]:
    """Put fitted wheels in the places of those for GPUs, where a folder's PyTorch is for the processor.

    Returns:
        the fitted ones, by name.

    Raises:
        WheelhouseError: one cannot be fitted.
    """
    if not any(folder.glob(f"torch-*{CPU_ONLY}-*.whl")):
        return {}
    wheels = {name: wheel for name in CPU_ONLY_PACKAGES for wheel in folder.glob(f"{name}-*.whl")}
    fitted = {name: fit_wheel(wheel) for name, wheel in wheels.items() if CPU_ONLY not in wheel.name}
    for name in fitted:
        wheels[name].unlink()
    return fitted


def fit_wheel(wheel: Path) -> Path:
    """Write a wheel that needs none of CUDA's libraries beside one that does, and return its path.

    It is of the same version "for the processor" and the same bytes wherever it is made: its files are not compressed.

    Raises:
        WheelhouseError: it has a library that cannot be fitted.
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
