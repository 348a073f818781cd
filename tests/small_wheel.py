"""Small wheel for a requirements.txt that needs no index."""

import zipfile
from collections.abc import Mapping
from pathlib import Path


def write_wheel(
    folder: Path, module: str, source: str, version: str = "1.0", others: Mapping[str, bytes] | None = None
) -> Path:
    path = folder / f"{module}-{version}-py3-none-any.whl"
    info = f"{module}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{module}.py", source)
        for name, content in (others or {}).items():
            wheel.writestr(name, content)
        described = f"Metadata-Version: 2.1\nName: {module.replace('_', '-')}\nVersion: {version}\n"
        wheel.writestr(f"{info}/METADATA", described)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path
