"""Files and objects, under the names that code written for smdebug knows."""

from smdebug.core.access_layer.file import TSAccessFile
from smdebug.core.access_layer.s3 import TSAccessS3
from smdebug.core.access_layer.s3handler import DeleteRequest, ListRequest, ReadObjectRequest, S3Handler
from smdebug.core.access_layer.utils import (
    DEFAULT_GRACETIME_FOR_RULE_STOP_SEC,
    ENV_RULE_STOP_SIGNAL_FILENAME,
    check_dir_exists,
    delete_s3_prefixes,
    has_training_ended,
    is_rule_signalled_gracetime_passed,
    is_s3,
    training_has_ended,
)

__all__ = [
    "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC",
    "ENV_RULE_STOP_SIGNAL_FILENAME",
    "DeleteRequest",
    "ListRequest",
    "ReadObjectRequest",
    "S3Handler",
    "TSAccessFile",
    "TSAccessS3",
    "check_dir_exists",
    "delete_s3_prefixes",
    "has_training_ended",
    "is_rule_signalled_gracetime_passed",
    "is_s3",
    "training_has_ended",
]
