"""Tests of the list of tested SDK versions, against the pinned ones."""

import re
from pathlib import Path

import pytest

from emulator.gateway.sdk_versions import TRIED, TRIED_RELEASES, describe_untried

CHECKOUT = Path(__file__).parents[4]
AGENT = "Boto3/1.44.5 md/Botocore#1.44.5 ua/2.1 os/linux#6 lang/python#3.11.9 lib/{}"


@pytest.mark.parametrize(
    "sdk",
    ["AWS-SageMaker-Python-SDK#2.257.7", "AWS-SageMaker-Python-SDK#3.0", "AWS-SageMakerCore#2.27.1", "aws-cli#1.46"],
)
def test_nothing_is_reported_of_what_was_tried(sdk: str) -> None:
    assert describe_untried(AGENT.format(sdk)) is None


@pytest.mark.parametrize(
    ("sdk", "name"),
    [
        ("AWS-SageMaker-Python-SDK#2.100.0", "AWS-SageMaker-Python-SDK 2.100.0"),
        ("AWS-SageMaker-Python-SDK/1.72.1", "AWS-SageMaker-Python-SDK 1.72.1"),
        ("AWS-SageMaker-Python-SDK#4.0", "AWS-SageMaker-Python-SDK 4.0"),
        ("AWS-SageMakerCore#2.1.0", "AWS-SageMakerCore 2.1.0"),
    ],
)
def test_what_was_never_tried_is_named_with_what_was(sdk: str, name: str) -> None:
    said = describe_untried(AGENT.format(sdk))
    assert said is not None
    assert said.startswith(f"{name} was not tested with this emulator. ")
    assert "pip install 'sagemaker==2.257.7' or pip install 'sagemaker==3.27.0'" in said


def test_what_was_tried_is_what_is_pinned() -> None:
    constraints = (CHECKOUT / "constraints.txt").read_text(encoding="utf-8")
    of_v3 = (CHECKOUT / "tests/clients/requirements-sagemaker-v3.txt").read_text(encoding="utf-8")
    assert f"\nsagemaker=={TRIED_RELEASES[0]}\n" in constraints
    assert TRIED["AWS-SageMaker-Python-SDK", "2"] == TRIED_RELEASES[0]
    core = re.search(r"^sagemaker-core==(.*)$", of_v3, re.MULTILINE)
    assert core is not None
    assert TRIED["AWS-SageMakerCore", "2"] == core[1]
    # The distribution of version 3 has the number of its part that trains, two majors up.
    assert f"\nsagemaker-train==1.{TRIED_RELEASES[1].partition('.')[2]}\n" in of_v3
    assert all("==" in line for line in of_v3.splitlines() if not line.startswith("#"))
