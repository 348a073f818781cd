"""Errors of boto3's clients, in parts."""

import pytest
from botocore.exceptions import ClientError


def error_of(caught: pytest.ExceptionInfo[ClientError]) -> tuple[str, str, int]:
    response = caught.value.response
    return (
        response["Error"]["Code"],
        response["Error"]["Message"],
        response["ResponseMetadata"]["HTTPStatusCode"],
    )
