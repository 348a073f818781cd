"""MXNet's environment, as the process back end builds it for its image."""

from pathlib import Path

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process.environments import build_environment

ROOT = Path(__file__).parents[4]


def build_mxnet_environment() -> Path:
    """Path of the environment's interpreter; the first time, on a new machine, this takes half a minute."""
    definition = next(found for found in ImageCatalogue() if found.name == "mxnet-training")
    return build_environment(definition, compiled=False).python
