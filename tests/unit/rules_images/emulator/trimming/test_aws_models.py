"""Tests of the models of botocore in the emulator's image."""

import shutil
from pathlib import Path
from typing import Any

import botocore
import botocore.loaders
import botocore.session
import pytest
from botocore.session import Session

from rules_images.emulator.trimming.aws_models import trim_models

WHOLE = Path(botocore.__file__).parent / "data"
# The last two are of no service that the emulator answers.
SERVICES = ("ec2", "events", "lambda", "s3", "sagemaker", "sagemaker-runtime", "sts", "braket", "m2")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of some of botocore's data, without what no client needs."""
    folder = tmp_path_factory.mktemp("botocore") / "data"
    folder.mkdir()
    for path in WHOLE.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
        elif path.name in SERVICES:
            shutil.copytree(path, folder / path.name)
    removed = trim_models(folder)
    assert removed == ["braket", "m2"]
    return folder


@pytest.fixture
def session(data: Path) -> Session:
    """A session that finds these data only."""
    session = botocore.session.Session()
    loader = botocore.loaders.Loader(extra_search_paths=[str(data)], include_default_search_paths=False)
    session.register_component("data_loader", loader)
    return session


@pytest.mark.slow
@pytest.mark.parametrize(
    "service",
    [pytest.param(name, marks=[] if name in {"s3", "sagemaker"} else pytest.mark.nightly) for name in SERVICES[:-2]],
)
def test_a_client_of_an_answered_service_is_as_before(session: Session, service: str) -> None:
    keys: dict[str, Any] = dict.fromkeys(("aws_access_key_id", "aws_secret_access_key"), "any")
    small = session.create_client(service, region_name="us-east-1", **keys)
    whole = botocore.session.Session().create_client(service, region_name="us-east-1", **keys)

    assert small.meta.service_model.operation_names == whole.meta.service_model.operation_names
    assert small.meta.endpoint_url == whole.meta.endpoint_url
    assert small.waiter_names == whole.waiter_names


def test_the_latest_model_of_each_service_is_kept(data: Path) -> None:
    for service in SERVICES[:-2]:
        latest = max(path.name for path in (WHOLE / service).iterdir())
        assert [path.name for path in (data / service).iterdir()] == [latest]
