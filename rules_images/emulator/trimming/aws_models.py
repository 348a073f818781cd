"""Removal of botocore's models that no client of the emulator needs.

Kept is the latest model of each service that moto answers, and of all of SageMaker: these are what the emulator itself
reads, and what a boto3 client in a Lambda function can reach.
"""

import gzip
import json
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

_REGION = "us-east-1"
_LARGE = 1000


def trim_models(data: Path) -> list[str]:
    """Remove models from a folder of data of botocore, and return the names of the services that were removed."""
    from moto.backend_index import backend_url_patterns

    patterns = [re.compile(pattern) for _, pattern in backend_url_patterns]
    names = {name for name, _ in backend_url_patterns}
    removed = []
    for service in sorted(path for path in data.iterdir() if path.is_dir()):
        versions = sorted(path for path in service.iterdir() if path.is_dir())
        if service.name.startswith("sagemaker") or _is_answered(service.name, versions[-1], patterns, names):
            for version in versions[:-1]:
                shutil.rmtree(version)
        else:
            shutil.rmtree(service)
            removed.append(service.name)
    for path in data.rglob("*.json"):
        if path.stat().st_size > _LARGE:  # botocore reads both forms
            path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            path.unlink()
    return removed


def _is_answered(name: str, version: Path, patterns: Iterable[re.Pattern[str]], names: set[str]) -> bool:
    model = json.loads(gzip.decompress((version / "service-2.json.gz").read_bytes()))
    metadata = model["metadata"]
    prefixes = {metadata["endpointPrefix"], metadata.get("signingName", metadata["endpointPrefix"])}
    hosts = [f"https://{prefix}{region}.amazonaws.com" for prefix in prefixes for region in (f".{_REGION}", "")]
    return name.replace("-", "") in names or any(each.match(host) for each in patterns for host in hosts)
