"""Botocore's files for a client of S3, read when this module is imported.

A warm interpreter imports it, so that the training toolkit of each job need not read the files, which delays the script
by 0.03 to 0.06 s.
"""

import os

import boto3
import botocore.session

_inner = botocore.session.Session()
# The client shows which files are read, and connects to nothing. With keys, it looks for none.
boto3.session.Session("unused", "unused", region_name="us-east-1", botocore_session=_inner).resource("s3")
_loader = _inner.get_component("data_loader")


def use_preloaded_files() -> None:
    """Give boto3's default session the files that were read; not if AWS_DATA_PATH adds other folders."""
    if "AWS_DATA_PATH" not in os.environ:
        session = botocore.session.Session()
        session.register_component("data_loader", _loader)
        boto3.setup_default_session(botocore_session=session)
