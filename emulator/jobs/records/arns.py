"""ARNs of SageMaker's resources."""

from __future__ import annotations


def build_arn(account_id: str, region: str, resource: str) -> str:
    """Build an ARN, in the partition of its region.

    >>> build_arn("123456789012", "cn-north-1", "training-job/job")
    'arn:aws-cn:sagemaker:cn-north-1:123456789012:training-job/job'
    """
    partition = next((name for start, name in _PARTITIONS.items() if region.startswith(start)), "aws")
    return f"arn:{partition}:sagemaker:{region}:{account_id}:{resource}"


_PARTITIONS = {"cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b"}
