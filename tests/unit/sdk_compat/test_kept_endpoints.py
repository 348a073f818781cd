from __future__ import annotations

import json
import os
import types
from typing import TYPE_CHECKING

import pytest

from sdk_compat.startup.kept_endpoints import keep_endpoints
from tests.unit.sdk_compat.shell_of_env import run_in_shell_of_env

if TYPE_CHECKING:
    from pathlib import Path


def test_endpoints_are_read_once_for_each_folder_of_other_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str | None] = []

    def resolve() -> object:
        read.append(os.environ.get("AWS_DATA_PATH"))
        return object()

    module = types.SimpleNamespace(_botocore_resolver=resolve)
    keep_endpoints(module)
    kept = module._botocore_resolver
    monkeypatch.delenv("AWS_DATA_PATH", raising=False)
    first = kept()
    assert kept() is first
    monkeypatch.setenv("AWS_DATA_PATH", "/elsewhere")
    assert kept() is not first
    monkeypatch.delenv("AWS_DATA_PATH")
    assert kept() is first
    assert read == [None, "/elsewhere"]


def test_a_reader_that_fails_is_asked_again() -> None:
    answers: list[object] = [OSError("no file"), "endpoints"]

    def resolve() -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    module = types.SimpleNamespace(_botocore_resolver=resolve)
    keep_endpoints(module)
    with pytest.raises(OSError, match="no file"):
        module._botocore_resolver()
    assert module._botocore_resolver() == "endpoints"


def test_a_module_without_the_function_is_left_alone() -> None:
    module = types.SimpleNamespace(other=1)
    keep_endpoints(module)
    assert vars(module) == {"other": 1}


@pytest.mark.slow
def test_a_shell_with_the_variables_of_env_has_the_sdk_read_endpoints_once(tmp_path: Path) -> None:
    source = (
        "import json\n"
        "from botocore.loaders import Loader\n"
        "import sagemaker.session, sagemaker.utils\n"
        "from sagemaker import image_uris\n"
        "load, read = Loader.load_data, []\n"
        "Loader.load_data = lambda self, name: (read.append(name), load(self, name))[1]\n"
        "regions = 'us-east-1', 'cn-north-1', 'us-east-1'\n"
        "uris = [image_uris.retrieve('xgboost', region, '1.7-1') for region in regions]\n"
        "print(json.dumps([read.count('endpoints'), uris, sagemaker.utils.aws_partition('cn-north-1')]))\n"
    )
    count, uris, partition = json.loads(run_in_shell_of_env(source, tmp_path).splitlines()[-1])
    assert count == 1
    assert [".dkr.ecr.us-east-1.amazonaws.com/" in uri for uri in uris] == [True, False, True]
    assert ".dkr.ecr.cn-north-1.amazonaws.com.cn/" in uris[1]
    assert partition == "aws-cn"
