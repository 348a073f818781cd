"""Tested SageMaker SDK versions; a job's log warns of any other."""

from __future__ import annotations

import re

TRIED = {
    ("AWS-SageMaker-Python-SDK", "2"): "2.257.7",
    ("AWS-SageMaker-Python-SDK", "3"): "3.0",  # what the SDK's versions 3 call themselves, all of them
    ("AWS-SageMakerCore", "2"): "2.27.0",
}
"""By what an SDK calls itself in a request, and its major version: the one that was tried."""
TRIED_RELEASES = ("2.257.7", "3.27.0")
"""Of the distribution ``sagemaker``."""
_SDK = re.compile(r"(?P<name>AWS-SageMaker-Python-SDK|AWS-SageMakerCore)[#/](?P<version>\d+(\.\d+)*)")


def describe_untried(user_agent: str) -> str | None:
    """Say that a request's SDK is of a version that was never tried; None where it was, or is no such SDK's.

    >>> describe_untried("Boto3/1.44 lib/AWS-SageMaker-Python-SDK#2.257.9") is None
    True
    """
    found = _SDK.search(user_agent)
    if found is None:
        return None
    tried = TRIED.get((found["name"], found["version"].partition(".")[0]))
    if tried is not None and read_minor(tried) == read_minor(found["version"]):
        return None
    return describe_version(f"{found['name']} {found['version']}")


def describe_version(name: str) -> str:
    """Say what to do where a version was never tried."""
    install = " or ".join(f"pip install 'sagemaker=={release}'" for release in TRIED_RELEASES)
    return f"{name} was never tried with this emulator: where something goes wrong, {install} brings one that was."


def read_minor(version: str) -> str:
    """Return a version up to its second number: those after it are mends."""
    return ".".join(version.split(".")[:2])
