"""AWS clients of actions, configured by environment variables.

The variables set the endpoint, the region and the credentials.
"""

import os
from typing import Any

from smdebug.exceptions import SMDebugError

_DEFAULT_REGION = "us-east-1"


def build_client(service: str) -> Any:
    """Return boto3's client of a service, in AWS_REGION or us-east-1; AWS_ENDPOINT_URL sets the endpoint.

    Raises:
        SMDebugError: boto3 is not installed.
    """
    try:
        import boto3
    except ImportError as error:
        raise SMDebugError("Actions of rules need boto3: pip install boto3.") from error
    # The service is known at run time only, and boto3's types have one overload for each service.
    make: Any = boto3.client
    return make(service, region_name=os.environ.get("AWS_REGION") or _DEFAULT_REGION)
