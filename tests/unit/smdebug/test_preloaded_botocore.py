"""Tests of the files that boto3 need not read again."""

from typing import Any

import boto3
import botocore.loaders
import pytest

from smdebug.preloaded_botocore import use_preloaded_files


@pytest.fixture(autouse=True)
def session_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def test_a_client_of_s3_reads_no_file_and_has_the_settings_of_its_own_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a file is read")

    monkeypatch.setattr(botocore.loaders.JSONFileLoader, "_load_file", refuse)
    monkeypatch.delenv("AWS_DATA_PATH", raising=False)  # the AWS CLI sets it in the process that imports it
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://here.example:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "of-the-job")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    use_preloaded_files()
    client = boto3.resource("s3", region_name="eu-west-1").meta.client
    assert (client.meta.endpoint_url, client.meta.region_name) == ("http://here.example:1", "eu-west-1")
    assert boto3.DEFAULT_SESSION is not None
    keys = boto3.DEFAULT_SESSION.get_credentials()
    assert keys is not None
    assert keys.access_key == "of-the-job"


def test_folders_of_the_environment_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DATA_PATH", "/somewhere")
    use_preloaded_files()
    assert boto3.DEFAULT_SESSION is None
