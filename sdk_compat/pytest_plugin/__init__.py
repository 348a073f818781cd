"""pytest plugin: fixtures for an emulator, and a report of its training jobs.

pytest loads this plugin whenever the distribution is installed. It starts nothing and imports nothing large until a
test uses one of its fixtures.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from pathlib import Path

    from sdk_compat.emulator_process import EmulatorProcess
    from sdk_compat.pytest_plugin.around_tests import AroundTests
    from sdk_compat.pytest_plugin.emulator import SessionEmulator
    from sdk_compat.remote import RemoteEmulator

# The key of a pytest-xdist worker's jobs in its ``workeroutput``.
_OUTPUT = "sagemaker_jobs"
# The name of the hooks that are registered when the emulator has started.
_HOOKS = "sagemaker-around-tests"
_jobs = pytest.StashKey[list[dict[str, Any]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Define the command-line options."""
    group = parser.getgroup(
        "sagemaker",
        "SageMaker emulator. Other settings are environment variables, such as SMDEBUG_EMULATOR_MAX_JOBS=2: see "
        "`smdebug-emulator start --help`",
    )
    group.addoption(
        "--sagemaker-runtime",
        metavar="NAME",
        default="auto",
        help="What training jobs run in: docker, process, swarm or another back end of it; auto: docker if an "
        "engine answers, else process (default: auto). "
        "container starts the emulator itself in a container, for machines where it does not run.",
    )
    group.addoption(
        "--sagemaker-remote",
        metavar="URL",
        default=os.environ.get("SMDEBUG_EMULATOR_REMOTE"),
        help="Use the emulator at this address and start none (default: $SMDEBUG_EMULATOR_REMOTE). All workers of "
        "pytest-xdist share it; jobs that were there before are not reported.",
    )
    group.addoption(
        "--sagemaker-allow-internet",
        action="store_true",
        help="Let Docker containers reach the internet; else they reach the emulator and their own job's hosts.",
    )
    group.addoption(
        "--sagemaker-warm",
        metavar="IMAGES",
        default="",
        help="Images, separated by commas, whose frameworks are imported ahead, such as pytorch-training, for jobs "
        "that are local processes. Those of other images are imported with their first job.",
    )
    group.addoption(
        "--sagemaker-no-warm",
        action="store_true",
        help="Start each job that is a local process with a new interpreter.",
    )
    group.addoption(
        "--sagemaker-keep",
        action="store_true",
        help="Keep the emulator's state folder, with jobs and S3's objects, and say where it is.",
    )
    group.addoption(
        "--sagemaker-report",
        metavar="FILE",
        help="Write the table of jobs and verdicts there, with plots: Markdown, or HTML where FILE ends in .html.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to keep what ends with its container."""
    is_in_container = config.getoption("--sagemaker-runtime") == "container" and not config.getoption(
        "--sagemaker-remote"
    )
    if is_in_container and config.getoption("--sagemaker-keep"):
        raise pytest.UsageError(
            "--sagemaker-keep does not keep the state of --sagemaker-runtime container, which is removed with the "
            "container: leave one of them out."
        )


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Note a fixture that is set up while AWS clients use the emulator, because its finalizers have to use it too."""
    plugins = request.config.pluginmanager
    before: AroundTests | None = plugins.get_plugin(_HOOKS)
    requests = before.requests if before is not None else 0
    try:
        return (yield)
    finally:
        # This fixture may be the emulator's own, or the first one that requests that.
        hooks: AroundTests | None = plugins.get_plugin(_HOOKS)
        if hooks is not None:
            hooks.note_fixture(fixturedef, is_user=hooks.requests != requests)


@pytest.fixture(scope="session")
def sagemaker_emulator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SessionEmulator]:
    """Start an emulator for the test session, or use the one of ``--sagemaker-remote``.

    Each worker of pytest-xdist starts its own.

    It has ``endpoint_url``, ``role_arn``, ``client(service)`` and methods that wait for jobs and rules. During a test
    that uses this fixture, directly or through another fixture, all AWS clients use the emulator, including those in
    subprocesses. So do the finalizers of fixtures that were set up in such a test, whenever they run.
    """
    from concurrent.futures import ThreadPoolExecutor

    from sdk_compat.aws_variables import EmulatorAnswerError
    from sdk_compat.environment import EndpointError

    config = request.config
    folder = tmp_path_factory.mktemp("sagemaker-emulator")
    with ThreadPoolExecutor() as others:
        starting = others.submit(_open_emulator, config, folder / "state")
        # These import boto3, which is slow, so they are imported while the emulator starts.
        from sdk_compat.pytest_plugin.around_tests import AroundTests
        from sdk_compat.pytest_plugin.emulator import SessionEmulator

        try:
            emulator = SessionEmulator(folder, starting.result())
        except (EmulatorAnswerError, EndpointError) as error:
            pytest.fail(f"The SageMaker emulator did not start: {error}", pytrace=False)
    try:
        hooks = AroundTests(emulator)
        try:
            # The hook that records the start of tests is registered only now, in the middle of the first test.
            test = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
            emulator.note_test(test)
            hooks.lead_rest_of(next((item for item in request.session.items if item.nodeid == test), None))
            config.pluginmanager.register(hooks, _HOOKS)
            yield emulator
            found = emulator.collect_jobs(with_plots=config.getoption("--sagemaker-report") is not None)
            _keep_jobs(config, found)
        finally:
            hooks.close()
            if config.pluginmanager.is_registered(hooks):  # else the setup failed, and its error is the one to show
                config.pluginmanager.unregister(hooks)
    finally:
        emulator.stop(keep=config.getoption("--sagemaker-keep"))


def _open_emulator(config: pytest.Config, state_dir: Path) -> EmulatorProcess | RemoteEmulator:
    if url := config.getoption("--sagemaker-remote"):
        from sdk_compat.remote import RemoteEmulator

        return RemoteEmulator(url, os.environ)
    if config.getoption("--sagemaker-runtime") == "container":
        from sdk_compat.testcontainers import ContainerEmulator

        return ContainerEmulator()
    from sdk_compat.emulator_process import EmulatorProcess

    return EmulatorProcess(
        state_dir,
        runtime=config.getoption("--sagemaker-runtime"),
        allow_internet=config.getoption("--sagemaker-allow-internet"),
        warm=None if config.getoption("--sagemaker-no-warm") else config.getoption("--sagemaker-warm"),
    )


@pytest.fixture
def reset_sagemaker(sagemaker_emulator: SessionEmulator) -> None:
    """Delete all jobs, objects and other data before the test. The buckets of these fixtures remain, empty."""
    sagemaker_emulator.reset()


@pytest.fixture(scope="session")
def boto3_session(sagemaker_emulator: SessionEmulator) -> Any:
    """Return a ``boto3.Session`` whose clients all use the emulator."""
    return sagemaker_emulator.boto3_session


@pytest.fixture(scope="session")
def sagemaker_session(sagemaker_emulator: SessionEmulator) -> Any:
    """Return a session of the SageMaker SDK that is installed, v2 or v3.

    It is the ``sagemaker_session`` argument of estimators and processors, or of a ModelTrainer.
    sagemaker-core needs no session: during a test that uses ``sagemaker_emulator``, it uses the emulator.
    """
    return sagemaker_emulator.open_sagemaker_session()


@pytest.fixture(scope="session")
def s3_bucket(sagemaker_emulator: SessionEmulator) -> str:
    """Create an S3 bucket for the test session and return its name."""
    return sagemaker_emulator.make_bucket("sagemaker-tests")


@pytest.fixture(scope="session")
def wait_for_training_job(sagemaker_emulator: SessionEmulator) -> Callable[..., dict[str, Any]]:
    """``wait_for_training_job(job, status=None, timeout=600)``: wait until a job ends and return its description."""
    return sagemaker_emulator.wait


@pytest.fixture(scope="session")
def wait_for_rules(sagemaker_emulator: SessionEmulator) -> Callable[..., dict[str, str]]:
    """``wait_for_rules(job, timeout=600)``: wait until a job's rules end and return their statuses by name."""
    return sagemaker_emulator.wait_for_rules


@pytest.fixture(scope="session")
def assert_rule(sagemaker_emulator: SessionEmulator) -> Callable[..., None]:
    """``assert_rule(job, rule, status, timeout=600)``: wait until a rule ends and fail if its status differs.

    NoIssuesFound of a rule that judged nothing is a failure, too, without ``may_judge_nothing=True``.
    """
    return sagemaker_emulator.assert_rule


@pytest.fixture(scope="session")
def open_trial(sagemaker_emulator: SessionEmulator) -> Callable[..., Any]:
    """``open_trial(job)``: open the tensors that a job saved, as an ``smdebug`` trial."""
    return sagemaker_emulator.open_trial


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ARG001 - pytest matches hooks' arguments by name
    """Collect the jobs of a pytest-xdist worker that has ended."""
    _keep_jobs(node.config, getattr(node, "workeroutput", {}).get(_OUTPUT, []))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the results of the jobs, and write the report if ``--sagemaker-report`` is given."""
    jobs = config.stash.get(_jobs, [])
    path: str | None = config.getoption("--sagemaker-report")
    if not jobs and path is None:
        return
    # Workers that share an emulator elsewhere each report its jobs.
    jobs = list({(job["state_dir"], job["region"], job["name"]): job for job in jobs}.values())
    from sdk_compat.pytest_plugin.report import format_table, format_warnings, write_report

    if jobs:
        terminalreporter.section("SageMaker training jobs")
        width = terminalreporter._tw.fullwidth  # noqa: SLF001 - as pytest's own plugins do
        # No name is cut in a file, or in the log of a CI job.
        is_narrow = terminalreporter.isatty or "COLUMNS" in os.environ
        for line in (*format_table(jobs, width if is_narrow else sys.maxsize), *format_warnings(jobs, width)):
            terminalreporter.write_line(line)
    if path is not None:
        target: Path = config.invocation_params.dir / path
        write_report(target, jobs)
        terminalreporter.write_line(f"SageMaker report: {target}")
    keeps = config.getoption("--sagemaker-keep") and not config.getoption("--sagemaker-remote")
    for kept in sorted({job["state_dir"] for job in jobs} if keeps else ()):
        terminalreporter.write_line(f"Kept: smdebug-emulator start --state-dir {kept}")


def _keep_jobs(config: pytest.Config, jobs: list[dict[str, Any]]) -> None:
    """Store jobs for the summary. A pytest-xdist worker sends them to the process that prints the summary."""
    output: dict[str, Any] | None = getattr(config, "workeroutput", None)
    if output is None:
        config.stash.setdefault(_jobs, []).extend(jobs)
    else:
        output[_OUTPUT] = jobs
