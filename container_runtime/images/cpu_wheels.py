"""Wheels linked to CUDA, made to work without CUDA's libraries.

PyPI has torchvision and torchaudio only as GPU builds. These builds also contain all of their CPU code, and are adapted
to a CPU-only PyTorch. Where PyTorch itself is a GPU build, wheels of placeholders replace CUDA's (see
``absent_libraries``).
"""

import base64
import hashlib
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from container_runtime.runtime import WheelhouseError

CPU_ONLY_PACKAGES = ("torchaudio", "torchvision")
CPU_ONLY = "+cpu"
"""Version suffix of CPU-only packages, as on PyTorch's own package index."""

FITTING = "1"
"""Version of the procedure. Increase it when wheels are adapted in a different way."""

_PLATFORM = "manylinux2014_x86_64"
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
    # A start of the emulator does not wait for it.
    from container_runtime.images.shared_objects import unlink_libraries

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
            records.append(_build_record(path, content))
        _write(target, f"{new}RECORD", "".join([*records, f"{new}RECORD,,\n"]).encode(), 0o644 << 16)
    return fitted


def build_placeholder_wheels(lines: Iterable[str], folder: Path) -> list[Path]:
    """Write wheels with the names and versions of GPU packages, which have placeholders of their libraries.

    The first of them has the placeholders, next to PyTorch's own libraries, where these look. The others are empty:
    they are there because pip would otherwise install the packages themselves with a script's ``requirements.txt``.

    Args:
        lines: lines of the packages in a lock file.
        folder: folder of the other wheels, among which PyTorch's is, and of the result.

    Raises:
        WheelhouseError: a wheel of PyTorch's cannot be read.
    """
    # A start of the emulator does not wait for it.
    from container_runtime.images.absent_libraries import build_placeholders

    wheels = sorted(path for name in ("torch", *CPU_ONLY_PACKAGES) for path in folder.glob(f"{name}-*.whl"))
    libraries = {f"torch/lib/{name}": content for name, content in build_placeholders(wheels).items()}
    made = []
    for line in lines:
        name, _, version = line.split()[0].partition("==")
        path = folder / f"{name.replace('-', '_')}-{version}{CPU_ONLY}-py3-none-{_PLATFORM}.whl"
        information = f"{name.replace('-', '_')}-{version}{CPU_ONLY}.dist-info"
        contents = libraries | {
            f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}{CPU_ONLY}\n".encode(),
            f"{information}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-{_PLATFORM}\n".encode(),
        }
        with zipfile.ZipFile(path, "w") as wheel:
            for member, content in contents.items():
                _write(wheel, member, content, 0o644 << 16)
            records = [_build_record(member, content) for member, content in contents.items()]
            _write(
                wheel, f"{information}/RECORD", "".join([*records, f"{information}/RECORD,,\n"]).encode(), 0o644 << 16
            )
        made.append(path)
        libraries = {}
    return made


def _build_record(path: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return f"{path},sha256={digest},{len(content)}\n"


def _write(target: zipfile.ZipFile, path: str, content: bytes, attributes: int) -> None:
    member = zipfile.ZipInfo(path)  # of 1980
    member.external_attr = attributes
    member.create_system = 3  # Unix, of which the attributes are
    target.writestr(member, content)
