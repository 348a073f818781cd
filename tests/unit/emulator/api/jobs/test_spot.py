import pytest
from flask import Flask

from emulator.api.jobs.spot import build_spot_pages
from emulator.exceptions import ValidationException

ASKED: list[tuple[str | None, str, float]] = []
PATH = "/_emulator/training-jobs/job/interrupt"


def post(query: str, error: Exception | None = None) -> tuple[int, dict[str, object]]:
    def interrupt(*asked: object) -> None:
        if error is not None:
            raise error
        ASKED.append(asked)  # type: ignore[arg-type]

    pages = Flask("test")
    pages.register_blueprint(build_spot_pages(interrupt))
    answer = pages.test_client().post(PATH + query)
    return answer.status_code, answer.get_json()


def test_what_is_asked_for_is_handed_on() -> None:
    ASKED.clear()
    assert post("") == (202, {"name": "job", "capacityAfterSeconds": 0.0})
    assert post("?region=eu-west-1&capacityAfterSeconds=2.5")[0] == 202
    assert ASKED == [(None, "job", 0.0), ("eu-west-1", "job", 2.5)]


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "1e3", "soon", "9999999", ""])
def test_invalid_seconds_are_refused(seconds: str) -> None:
    status, body = post(f"?capacityAfterSeconds={seconds}")
    assert status == 400
    assert "capacityAfterSeconds" in str(body["error"])


def test_what_is_wrong_with_the_job_is_reported() -> None:
    assert post("", ValidationException("no such job")) == (400, {"error": "no such job"})
