"""An S3 object that is there once it is closed."""

from __future__ import annotations

from smdebug.core.access_layer.file import WholeFile
from smdebug.core.output import S3_SCHEME, S3Output

__all__ = ["TSAccessS3"]


class TSAccessS3(WholeFile):
    """An object gathered in memory and uploaded by `close`; the bucket is made if it is not there."""

    def __init__(
        self,
        bucket_name: str,
        key_name: str,
        aws_access_key_id: str | None = None,  # noqa: ARG002 - credentials come from where boto3 finds them
        aws_secret_access_key: str | None = None,  # noqa: ARG002
        binary: bool = True,
    ) -> None:
        """Take bucket and key; repeated slashes of the key are collapsed."""
        self.bucket_name = bucket_name
        self.key_name = key_name
        self.binary = binary
        super().__init__(S3Output(f"{S3_SCHEME}{bucket_name}/{key_name}"))
