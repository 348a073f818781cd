"""SageMaker's service model and services' signing names, from botocore."""

from __future__ import annotations

import gzip
import json
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

# Both are at the beginning of a model; most services have the second alone.
_SIGNING_NAME, _PREFIX = (re.compile(rb'"%b"\s*:\s*"([^"]+)"' % name) for name in (b"signingName", b"endpointPrefix"))
_METADATA_BYTES = 3000

if TYPE_CHECKING:
    from botocore.loaders import JSONFileLoader
    from botocore.model import ServiceModel


class _PlainFiles:
    """Files of botocore's ``Loader``, read in two thirds of the time: its own reader makes ordered dictionaries."""

    def exists(self, path: str) -> bool:
        return any(Path(path + ending).is_file() for ending in (".json", ".json.gz"))

    def load_file(self, path: str) -> Any:
        if (plain := Path(f"{path}.json")).is_file():
            return json.loads(plain.read_bytes())
        packed = Path(f"{path}.json.gz")
        return json.loads(gzip.decompress(packed.read_bytes())) if packed.is_file() else None


@lru_cache(maxsize=1)
def load_service_model() -> ServiceModel:
    """Load it once, without a look at the other services' folders, which would take as long as the model itself."""
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    loader = Loader(file_loader=cast("JSONFileLoader", _PlainFiles()))
    version = loader.determine_latest_version("sagemaker", "service-2")
    return ServiceModel(loader.load_data(f"sagemaker/{version}/service-2"), "sagemaker")


@lru_cache(maxsize=1)
def load_signing_names() -> dict[str, str]:
    """Load the name by which requests of each service are signed, by the service's name in boto3."""
    import botocore

    found = {}
    # Sorted, so that the latest version of a model comes last.
    for path in sorted(Path(botocore.__file__).parent.glob("data/*/*/service-2.json*")):
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            head = file.read(_METADATA_BYTES)
        if match := _SIGNING_NAME.search(head) or _PREFIX.search(head):
            found[path.parts[-3]] = match[1].decode()
    return found
