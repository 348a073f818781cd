"""Operations that the SDKs call."""

from importlib.metadata import distribution, version
from pathlib import Path

import pytest

from docs_site.client_operations import find_called, read_lists


def test_each_way_to_call_an_operation_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "self.sagemaker_client.create_model(x)\n"
        "_boto_create_method = 'create_trial'\n"
        "ProcessingJob.get(name)\nTransformJob.get_all()\nclient.no_operation()\n"
    )
    (tmp_path / "resources.py").write_text("client.delete_model()\n")
    assert find_called(tmp_path) == ["CreateModel", "CreateTrial", "DescribeProcessingJob", "ListTransformJobs"]


@pytest.mark.slow
def test_the_list_of_the_installed_sdk_is_whole() -> None:
    found = version("sagemaker")
    listed = read_lists().get(f"sagemaker {found}")
    if listed is None:
        pytest.skip(f"sagemaker {found} was not looked through")
    assert find_called(Path(str(distribution("sagemaker").locate_file("sagemaker")))) == listed
