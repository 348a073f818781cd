"""ARNs of SageMaker resources."""


def build_arn(account_id: str, region: str, resource: str) -> str:
    """Build an ARN, in the partition of its region.

    >>> build_arn("123456789012", "cn-north-1", "training-job/job")
    'arn:aws-cn:sagemaker:cn-north-1:123456789012:training-job/job'
    """
    partition = next((name for start, name in _PARTITIONS.items() if region.startswith(start)), "aws")
    return f"arn:{partition}:sagemaker:{region}:{account_id}:{resource}"


def lower_name(arn: str) -> str:
    """Lower the name in an ARN where AWS does.

    >>> lower_name("arn:aws:sagemaker:us-east-1:123456789012:processing-job/Work")
    'arn:aws:sagemaker:us-east-1:123456789012:processing-job/work'
    """
    start, slash, name = arn.partition("/")
    return f"{start}{slash}{name.lower()}" if start.rpartition(":")[2] in _LOWERED else arn


_LOWERED = {"processing-job", "hyper-parameter-tuning-job"}
_PARTITIONS = {"cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b"}
