"""The accounts of AWS's own images, by region, as data for the emulator.

``python -m docs_site.image_accounts > emulator/operations/validation/image_accounts.json`` reads them from the
SageMaker SDK that is installed; a test compares.
"""

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def build_table() -> dict[str, list[str]]:
    """Build the sorted accounts of each region."""
    package = importlib.util.find_spec("sagemaker")  # not imported, which would take seconds
    assert package is not None
    assert package.submodule_search_locations
    accounts: dict[str, set[str]] = {}
    for path in Path(package.submodule_search_locations[0], "image_uri_config").glob("*.json"):
        for region, account in _find_registries(json.loads(path.read_text(encoding="utf-8"))):
            accounts.setdefault(region, set()).add(account)
    return {region: sorted(found) for region, found in sorted(accounts.items())}


def _find_registries(content: Any) -> Iterator[tuple[str, str]]:
    match content:
        case dict():
            registries = content.get("registries")
            if isinstance(registries, dict):
                yield from ((region, account) for region, account in registries.items() if isinstance(account, str))
            for each in content.values():
                yield from _find_registries(each)
        case list():
            for each in content:
                yield from _find_registries(each)


if __name__ == "__main__":
    lines = ",\n".join(f" {json.dumps(region)}: {json.dumps(found)}" for region, found in build_table().items())
    sys.stdout.write(f"{{\n{lines}\n}}\n")
