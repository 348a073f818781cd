"""SageMaker's service model, from the installed botocore."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.model import ServiceModel


@lru_cache(maxsize=1)
def load_service_model() -> ServiceModel:
    """Load it once: it takes a tenth of a second."""
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    return ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")
