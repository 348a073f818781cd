"""SageMaker Python SDK, version 3: a session for ModelTrainer and sagemaker-core."""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from sdk_compat.aws_variables import check_emulator
from sdk_compat.sagemaker_v2 import build_session

_FIRST_VERSION = 3


def local_session(endpoint_url: str, region: str = "us-east-1", *, default_bucket: str | None = None) -> Any:
    """Create a ``sagemaker.core.helper.session_helper.Session`` that uses only the emulator.

    It is the ``sagemaker_session`` of a ModelTrainer. sagemaker-core's own resources, such as its TrainingJob, take a
    boto3 session in its place, or use the environment: ``smdebug-emulator run`` and ``env`` set it.

    Args:
        endpoint_url: the emulator's URL.
        region: the session's region.
        default_bucket: the name of the default bucket, which is created when first needed; the SDK's default if None.

    Raises:
        ImportError: version 3 of the SDK is not installed; the message says what to do.
        EmulatorAnswerError: no emulator responds at the endpoint.
    """
    check_emulator(endpoint_url, region)
    try:
        from sagemaker.core.helper.session_helper import Session
    except ImportError as error:
        raise ImportError(
            f"{error}: this needs version 3 of the SageMaker SDK (pip install 'sagemaker>=3'). For version 2, use "
            "sdk_compat.sagemaker_v2.local_session."
        ) from error

    return build_session(Session, endpoint_url, region, default_bucket)


def is_installed() -> bool:
    """Return whether the SageMaker SDK that is installed is version 3 or later.

    Raises:
        ImportError: no SageMaker SDK is installed; the message says which there are.
    """
    for distribution in ("sagemaker", "sagemaker-train"):
        try:
            number = version(distribution)
        except PackageNotFoundError:
            continue
        # The parts of version 3 have versions of their own, and version 2 comes without sagemaker-train.
        return distribution == "sagemaker-train" or int(number.partition(".")[0]) >= _FIRST_VERSION
    raise ImportError(
        "No SageMaker SDK is installed: pip install 'sagemaker>=3' for ModelTrainer, or pip install 'sagemaker<3' for "
        "estimators and the Rule classes of sagemaker.debugger."
    )
