"""Tests of the table of environments in docs/frameworks.md."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.version import Version

from container_runtime.images.catalogue import ImageCatalogue
from docs_site.framework_versions import FRAMEWORKS, PAGE, build_table, replace_table

# The SageMaker SDK's data: every version that AWS has published an image of.
VERSIONS_OF_AWS = {
    "pytorch-training": "pytorch",
    "tensorflow-training": "tensorflow",
    "sagemaker-xgboost": "xgboost",
    "sagemaker-scikit-learn": "sklearn",
    "mxnet-training": "mxnet",
}


def find_row(framework: str, asked: str) -> list[str]:
    """The cells of the page's line for a version of a framework."""
    table = PAGE.read_text(encoding="utf-8").partition("<!-- environments")[2].partition("<!-- end")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    found = []
    for row in rows:
        if match := re.fullmatch(
            rf"{framework} (?:from ([\d.]+)(?:, | on))?(?:before ([\d.]+))?(?:of any version)?", row[0]
        ):
            first, below = match.groups()
            if (not first or Version(first) <= Version(asked)) and (not below or Version(asked) < Version(below)):
                found.append(row)
    assert len(found) == 1, (framework, asked)
    return found[0]


def test_the_table_is_that_of_the_image_definitions() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert replace_table(page, build_table(ImageCatalogue())) == page, "run `make pages`"
    with pytest.raises(ValueError, match="no table"):
        replace_table("", "")


@pytest.mark.parametrize("name", VERSIONS_OF_AWS)
def test_every_version_of_aws_gets_what_the_table_says(name: str) -> None:
    sdk = find_spec("sagemaker")  # its import takes seconds
    assert sdk is not None
    assert sdk.origin is not None
    data = json.loads(
        Path(sdk.origin).with_name("image_uri_config").joinpath(f"{VERSIONS_OF_AWS[name]}.json").read_bytes()
    )
    versions = list(data.get("training", data)["versions"])
    assert len(versions) >= 5
    for tag in versions:
        asked = tag.partition("-")[0]  # of 1.7-1 the second number is the image's own
        found = ImageCatalogue().find(f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/{name}:{tag}")
        row = find_row(FRAMEWORKS[name][0], asked)
        assert found is not None
        assert row[2] == f"`{found[0].name}`"
        assert Version(str(found[0].version).partition("-")[0]).release[:2] == Version(row[1]).release[:2]


def test_every_image_with_several_environments_has_its_lines() -> None:
    on_demand = {found.name for found in ImageCatalogue() if found.below}
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in on_demand if f"| `{name}` |" not in page] == []
