"""SageMaker's service model, from the installed botocore."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.model import ServiceModel


@lru_cache(maxsize=1)
def load_service_model() -> ServiceModel:
    """Load it once, without a look at the other services' folders, which would take as long as the model itself."""
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    loader = Loader()
    version = loader.determine_latest_version("sagemaker", "service-2")
    return ServiceModel(loader.load_data(f"sagemaker/{version}/service-2"), "sagemaker")
