from typing import Any, cast

import pytest
from flask import Flask
from flask.testing import FlaskClient

from emulator.api.account_services import RequestAccounts
from emulator.api.application import build_pages
from emulator.api.description.known_parameters import build_parameter_check
from emulator.api.objects import build_objects_pages
from emulator.api.run_readers import RunReaders
from emulator.api.tensors import build_tensors_pages

TENSORS = "/_emulator/jobs/us-east-1/job/tensors"


@pytest.fixture
def client() -> FlaskClient:
    """Of pages that refuse a query before they ask an account."""
    accounts, unused = cast("RequestAccounts", None), cast("Any", None)
    readers = cast("RunReaders", None)
    pages: Flask = build_pages(
        lambda: {"status": "running"},
        [build_parameter_check(), build_objects_pages(accounts), build_tensors_pages(accounts, readers, unused)],
    )
    return pages.test_client()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("/_emulator/health?verbose=1", "/_emulator/health has no query parameter verbose: it has none."),
        (
            f"{TENSORS}/values?tensor=loss&steps=3",
            f"{TENSORS}/values has no query parameter steps: use account, tensor, step, index.",
        ),
        (f"{TENSORS}/series", "The query parameter tensor is missing: see /_emulator/docs."),
        (f"{TENSORS}/histogram?tensor=", "The query parameter tensor is missing: see /_emulator/docs."),
        (
            f"{TENSORS}/confusion?labels=y",
            "The query parameter predictions is missing: see /_emulator/docs.",
        ),
        ("/_emulator/s3/bucket/object", "The query parameter key is missing: see /_emulator/docs."),
    ],
)
def test_a_query_that_a_page_does_not_understand_is_refused(client: FlaskClient, address: str, said: str) -> None:
    answer = client.get(address)
    assert (answer.status_code, answer.get_json()) == (400, {"error": said, "code": "ValidationException"})


def test_known_parameters_reach_the_page(client: FlaskClient) -> None:
    assert client.head("/_emulator/health?token=of-the-gateway").status_code == 200
    assert client.get("/_emulator/nothing?of=it").status_code == 404
    assert (
        client.get(f"{TENSORS}/nothing?of=it").get_json()["error"].startswith("There is no nothing: use one of series")
    )
