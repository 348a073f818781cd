"""botocore's description of SageMaker: operations, shapes, regions. Loaded once, when first needed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.model import OperationModel, ServiceModel


@lru_cache(maxsize=1)
def load_service_model() -> ServiceModel:
    """SageMaker's service model, of the botocore that is installed."""
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")


def find_operation(name: str) -> OperationModel | None:
    """The model of ``name``, e.g. ``CreateTrainingJob``; None for an operation SageMaker does not have."""
    model = load_service_model()
    return model.operation_model(name) if name in model.operation_names else None


@lru_cache(maxsize=1)
def load_regions() -> frozenset[str]:
    """The regions that AWS has."""
    from botocore.loaders import Loader

    endpoints = Loader().load_data("endpoints")
    return frozenset(region for partition in endpoints["partitions"] for region in partition["regions"])
