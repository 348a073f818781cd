"""Tested SageMaker SDK versions; a job's log warns of any other."""

import re

TRIED = {
    ("AWS-SageMaker-Python-SDK", "2"): "2.257.7",
    ("AWS-SageMaker-Python-SDK", "3"): "3.0",  # how all 3.x versions of the SDK identify themselves
    ("AWS-SageMakerCore", "2"): "2.27.0",
}
"""The tested version, by the SDK's name in the user agent and its major version."""
TRIED_RELEASES = ("2.257.7", "3.27.0")
"""Tested versions of the distribution ``sagemaker``."""
_SDK = re.compile(r"(?P<name>AWS-SageMaker-Python-SDK|AWS-SageMakerCore)[#/](?P<version>\d+(\.\d+)*)")


def describe_untried(user_agent: str) -> str | None:
    """Describe the untested SDK version that sent a request; None if it is tested, or not the SageMaker SDK.

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
    """Return the advice for an untested version."""
    install = " or ".join(f"pip install 'sagemaker=={release}'" for release in TRIED_RELEASES)
    return f"{name} was not tested with this emulator. If something goes wrong, install a tested version: {install}."


def read_minor(version: str) -> str:
    """Return the major and minor version; patch releases do not matter."""
    return ".".join(version.split(".")[:2])
