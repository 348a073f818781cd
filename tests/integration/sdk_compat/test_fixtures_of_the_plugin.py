"""Tests of where the fixtures and tests of a project reach with the pytest plugin.

The sessions run in this process: test_pytest_plugin.py has those of a user, in interpreters of their own.
"""

from typing import Any

import pytest

from sdk_compat.pytest_plugin.around_tests import AroundTests
from sdk_compat.pytest_plugin.emulator import SessionEmulator
from tests.forked_emulator import ForkedEmulator

pytestmark = pytest.mark.slow

pytest_plugins = "pytester"

CONFTEST = """
import os

import pytest


def is_led():
    return os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://127.0.0.1:") and "AWS_PROFILE" not in os.environ


def check_end(name):
    with open("ends", "a") as file:
        file.write(f"{name} {'led' if is_led() else 'not led'}\\n")
"""

FINALIZERS = """
import os

import boto3
import pytest
from conftest import check_end, is_led


@pytest.fixture(scope="module")
def bucket(sagemaker_emulator):
    boto3.client("s3").create_bucket(Bucket="of-the-module")
    yield
    check_end("bucket")
    boto3.client("s3").delete_bucket(Bucket="of-the-module")


@pytest.fixture(scope="module", params=["a", "b"])
def of_a_parameter(request):
    request.getfixturevalue("sagemaker_emulator")
    yield
    check_end(request.param)


@pytest.fixture(scope="module")
def of_the_user():
    yield
    check_end("of_the_user")


def test_before(of_the_user):
    assert not is_led()


def test_with_it(bucket):
    assert is_led()


def test_without_it(monkeypatch):
    assert not is_led()
    monkeypatch.setenv("AWS_PROFILE", "of-one-test")


def test_after_it():
    assert os.environ["AWS_PROFILE"] == "of-the-user"


def test_parameter(of_a_parameter):
    assert is_led()


def test_last():
    assert not is_led()
"""

REQUESTS = """
import os

import pytest
from conftest import is_led


@pytest.fixture(scope="module")
def indirectly(request):
    request.getfixturevalue("boto3_session")


@pytest.fixture
def chosen(request):
    if request.param:
        request.getfixturevalue("sagemaker_emulator")


@pytest.mark.parametrize("name", ["sagemaker_emulator", "sagemaker_emulator", "boto3_session", "s3_bucket"])
def test_in_a_test(name, request, monkeypatch):
    assert not is_led()
    monkeypatch.setenv("AWS_PROFILE", "of-one-test")
    request.getfixturevalue(name)
    assert is_led()


@pytest.mark.parametrize("again", range(2))
def test_in_a_fixture(again, indirectly):
    assert is_led()


@pytest.mark.parametrize("chosen", [True, False, True], indirect=True)
def test_in_a_fixture_that_chooses(chosen, request):
    assert is_led() == request.node.callspec.params["chosen"]


def test_without_it():
    assert os.environ["AWS_PROFILE"] == "of-the-user"
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setattr("sdk_compat.emulator_process.EmulatorProcess", ForkedEmulator)
    monkeypatch.setenv("AWS_PROFILE", "of-the-user")
    return pytester


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    options = options or ("--sagemaker-runtime", "process", "--sagemaker-no-warm")
    return project.runpytest_inprocess("-W", "error", "-p", "no:randomly", "-p", "no:xdist", *options)


def test_fixtures_and_tests_reach_it_exactly_where_they_ask_for_it(project: pytest.Pytester) -> None:
    """Two files of one session, which has one emulator: a finalizer reaches what its fixture reached."""
    project.makeconftest(CONFTEST)
    project.makepyfile(test_finalizers=FINALIZERS, test_requests=REQUESTS)
    run(project).assert_outcomes(passed=17)
    ends = dict(line.split(" ", 1) for line in (project.path / "ends").read_text().splitlines())
    assert ends == {"bucket": "led", "a": "led", "b": "led", "of_the_user": "not led"}


def test_an_emulator_whose_fixture_fails_is_stopped(project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is that of the fixture, and not one of its end."""
    stopped: list[SessionEmulator] = []
    stop_really = SessionEmulator.stop

    def fail(*_: Any) -> None:
        raise OSError("of the setup")

    def stop(emulator: SessionEmulator, *, keep: bool) -> None:
        stop_really(emulator, keep=keep)
        stopped.append(emulator)

    monkeypatch.setattr(AroundTests, "lead_rest_of", fail)
    monkeypatch.setattr(SessionEmulator, "stop", stop)
    project.makepyfile("def test_it(sagemaker_emulator): ...")
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["E * OSError: of the setup"])
    result.stdout.no_fnmatch_line("*is not registered*")
    assert len(stopped) == 1


def test_the_state_of_a_container_cannot_be_kept(project: pytest.Pytester) -> None:
    project.makepyfile("def test_it(): ...")
    options = ["--sagemaker-runtime", "container", "--sagemaker-keep"]
    refused = run(project, *options)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(
        ["ERROR: --sagemaker-keep does not keep the state of *container*: leave one of them out."]
    )
    run(project, *options, "--sagemaker-remote", "http://127.0.0.1:9").assert_outcomes(passed=1)
