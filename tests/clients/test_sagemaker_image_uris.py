"""Tests of image URIs of the SageMaker SDK (version 2), resolved to our images.

Every region and version is tried.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from container_runtime.images.catalogue import ImageCatalogue

# By the SDK's name of a framework: our image, and the versions of before script mode, which it does not stand for.
FRAMEWORKS = {
    "pytorch": ("pytorch-training", ()),
    "tensorflow": ("tensorflow-training", ("1.4.1", "1.5.0", "1.6.0", "1.7.0", "1.8.0", "1.9.0", "1.10.0")),
    "mxnet": ("mxnet-training", ()),
    "xgboost": ("sagemaker-xgboost", ()),
    "sklearn": ("sagemaker-scikit-learn", ()),
    "debugger": ("sagemaker-debugger-rules", ()),
}


# By day: unit/container_runtime/images/test_catalogue.py asks for names as the SDK makes them.
@pytest.mark.nightly
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_region_and_version_has_an_image_of_ours(framework: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAGEMAKER_SUPPRESS_V2_WARNING", "1")
    import sagemaker
    from sagemaker import image_uris, utils

    # It reads the framework's file each time, and botocore's of all endpoints.
    monkeypatch.setattr(image_uris, "config_for_framework", cache(image_uris.config_for_framework))
    monkeypatch.setattr(utils, "_botocore_resolver", cache(utils._botocore_resolver))
    config = json.loads((Path(sagemaker.__file__).parent / "image_uri_config" / f"{framework}.json").read_text())
    config = config.get("training", config)
    of_versions: dict[str, dict[str, Any]] = {
        version: described for version, described in config["versions"].items() if "registries" in described
    }
    # Each region at least once, each version at least once: a version's name is the same in all of its regions.
    asked = [(version, next(iter(described["registries"]))) for version, described in of_versions.items()]
    newest = {region: version for version, described in of_versions.items() for region in described["registries"]}
    asked += [(version, region) for region, version in newest.items()]
    image, older = FRAMEWORKS[framework]
    catalogue = ImageCatalogue()
    unanswered = set()
    for version, region in asked:
        uri = image_uris.retrieve(
            framework,
            region,
            version=version,
            py_version=(of_versions[version].get("py_versions") or [None])[-1],
            instance_type="ml.m5.large",
            image_scope=None if framework == "debugger" else "training",
        )
        found = catalogue.find(uri)
        if found is None:
            unanswered.add(version)
        else:
            assert found[0].repositories[0] == image, uri
    assert unanswered == set(older)
    assert {"eu-west-1", "cn-north-1", "us-gov-west-1"} <= newest.keys()
