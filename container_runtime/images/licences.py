"""Licence report of the packages in images (``make licences``).

The licences are those that the packages' wheels declare; the wheels have to be fetched first.
"""

import zipfile
from email.parser import HeaderParser
from pathlib import Path

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.installation import locate_cache
from container_runtime.images.lock_files import read_requirements
from container_runtime.images.wheelhouse import IMAGE_PYTHON, fetch_wheels


def read_licence(wheel: Path) -> tuple[str, str, str]:
    """Return licence, name and version of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(
            each for each in archive.namelist() if each.endswith(".dist-info/METADATA") and each.count("/") == 1
        )
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    classified = [each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier", ()) if "License ::" in each]
    said = (metadata["License-Expression"], "; ".join(classified), (metadata["License"] or "").partition("\n")[0])
    return next(filter(None, said), "not said"), metadata["Name"], metadata["Version"]


def main() -> None:
    """Print a table of the packages with their licences and images."""
    images: dict[tuple[str, str, str], list[str]] = {}
    for definition in ImageCatalogue():
        requirements = read_requirements(definition, IMAGE_PYTHON)
        for wheel in fetch_wheels(requirements, locate_cache()).glob("*.whl") if requirements else ():
            images.setdefault(read_licence(wheel), []).append(definition.name)
    print("| Name | Version | License | Images |\n|---|---|---|---|")  # noqa: T201
    for (licence, name, version), names in sorted(images.items()):
        print(f"| {name} | {version} | {licence} | {', '.join(sorted(names))} |")  # noqa: T201


if __name__ == "__main__":
    main()
