"""Shared fixtures: the Docker gate, and one emulator for each back end."""

import gc
import os
import re
import signal
import socket
import sys
import tempfile
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

import docker
import pytest
from hypothesis import HealthCheck, settings

from container_runtime.docker.daemon import describe_engine
from container_runtime.gpus import list_gpus
from smdebug.logger import get_logger
from tests.interop.recorded_runs import unpack_recorded_runs
from tests.running_emulator import BACK_ENDS, RunningEmulator
from tests.swarm_nodes import SwarmNodes, find_refusal

with suppress(ImportError):
    # It comes with torch's builds for CUDA, and ends the process if it is loaded after TensorFlow.
    import triton  # noqa: F401

from collections.abc import Callable, Iterator

# The suite competes with the jobs that it starts.
os.environ["SMDEBUG_EMULATOR_JOB_NICENESS"] = "0"
# OpenMP's threads wait for the next operation by spinning. Beside three busy processes on two cores, PyTorch's tests
# would use half as much processor time again.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Most emulators of tests have one job, which gains nothing from imports for the next one; RunningEmulator has many.
os.environ["SMDEBUG_EMULATOR_NO_WARM"] = "1"
# It keeps the level of the environment in which it is first used: some tests have commands run with another.
get_logger()

# Whole jobs: those of one folder and back end share emulators, and are one worker's; so is each file that starts its
# own emulators. What takes longest is first.
FOLDERS_WITH_JOBS = ("tests/end_to_end/", "tests/clients/", "tests/interop/", "tests/contract/", "tests/soak/")
# Each of its files would have one more worker import the framework: it is one worker's, right after whole jobs.
FOLDER_WITH_A_FRAMEWORK = "tests/unit/smdebug/tensorflow/"
# The files of each of these share what a worker starts or imports: an emulator and a browser, an emulator and a
# moto_server, a process of the real smdebug, an interpreter with PyTorch that runs scripts in forks, its compiler.
FOLDERS_THAT_SHARE = (
    "tests/end_to_end/console/",
    "tests/contract/like_moto_server/",
    "tests/interop/",
    "tests/integration/smdebug/pytorch/",
    "tests/unit/smdebug/pytorch/",
)
# All that takes nodes of a Swarm, in every folder.
SWARM = "tests/end_to_end/ swarm"
# Unit tests are last: their files are short, and all workers end at nearly the same time.
TURNS = (*FOLDERS_WITH_JOBS, FOLDER_WITH_A_FRAMEWORK, "tests/unit/smdebug/pytorch/", "tests/integration/")

# The gate of every change: the same examples each time, from no file of an earlier run, however slow the machine is.
# For other examples: pytest --hypothesis-profile default.
settings.register_profile(
    "gate", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("gate")


@cache
def docker_engine_answers() -> bool:
    return describe_engine() is not None


@cache
def gpu_answers() -> bool:
    return bool(list_gpus())


_WHOLE_SWARM = {"test_swarm_training.py", "test_swarm_files.py", "test_swarm_lost_rules.py"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fuzz-requests", type=int, default=600, help="how many requests test_fuzz.py sends")
    parser.addoption("--swarm", choices=("short", "whole"), default="short", help="whole: what takes minutes")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave what takes minutes and gigabytes to who asks for it."""
    return True if collection_path.name in _WHOLE_SWARM and config.option.swarm != "whole" else None


def pytest_collection() -> None:
    """Collect no garbage while modules are imported: nearly all of it stays, and looking at it takes seconds."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exempt what was imported from later garbage collections."""
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    """Write what `make coverage` has measured: a worker that takes ten seconds to end is killed."""
    if (coverage := sys.modules.get("coverage")) is not None and (current := coverage.Coverage.current()) is not None:
        current.save()


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to the night what ``any_back_end`` tests would show once more on the second back end."""
    others = {back_end.id for back_end in BACK_ENDS[1:]}
    for item in items:
        if item.get_closest_marker("any_back_end") and isinstance(item, pytest.Function):
            chosen = {value for value in item.callspec.params.values() if isinstance(value, str)}
            if chosen & others:
                item.add_marker("nightly")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Give each worker of `pytest -n` whole files, and first those with whole jobs, by folder and back end."""
    from xdist.scheduler import LoadScopeScheduling

    class FilesAndJobs(LoadScopeScheduling):
        def _assign_work_unit(self, node: object) -> None:
            long = [scope for scope in self.workqueue if scope.startswith(TURNS)]
            if long:  # no worker may be left with them at the end
                self.workqueue.move_to_end(min(long, key=find_turn), last=False)
            super()._assign_work_unit(node)

        def _split_scope(self, nodeid: str) -> str:
            path = nodeid.partition("::")[0]
            for whole in (FOLDER_WITH_A_FRAMEWORK, *FOLDERS_THAT_SHARE):
                if path.startswith(whole):
                    return whole
            if not path.startswith(FOLDERS_WITH_JOBS):
                return path
            back_end = re.search(r"[-\[](docker|process|swarm)[-\]]", nodeid)
            if "/test_swarm" in path or (back_end and back_end[1] == "swarm"):
                return SWARM  # its engines start once in a worker, which takes up to fifteen seconds
            folder = path.rpartition("/")[0]
            return f"{folder}/ {back_end[1]}" if back_end else path

    def find_turn(scope: str) -> tuple[bool, int]:
        turn = next(number for number, folder in enumerate(TURNS) if scope.startswith(folder))
        return scope.endswith(".py"), turn

    config.option.loadscope_reorder = False  # else the scope of the most tests came first
    return FilesAndJobs(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked ``docker`` are skipped by name without an engine, but never where CI is set; ``gpu`` without one."""
    if item.get_closest_marker("gpu") and not gpu_answers():
        pytest.skip("no NVIDIA GPU answers here: it takes one, its driver, and nvidia-ml-py")
    if item.get_closest_marker("docker") and not docker_engine_answers():
        if os.environ.get("CI"):
            pytest.fail("No Docker engine answers, and in CI the Docker tests must run: make engine starts one.")
        pytest.skip("no Docker engine answers (make engine starts one)")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    """Close matplotlib's figures after each test: it warns, which is an error, of the 21st of a process."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Programs that are started can be interrupted, also where these tests cannot: a shell's background jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def refusing_port() -> Iterator[int]:
    """A port of 127.0.0.1 at which connections are refused, and which no other process can take meanwhile."""
    with socket.socket() as bound:  # and not listening
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture(scope="session")
def recorded_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the runs that the real smdebug recorded, by their names; to be read only."""
    return unpack_recorded_runs(tmp_path_factory.mktemp("recorded_runs"))


@pytest.fixture(scope="session")
def start_emulator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., RunningEmulator]]:
    """Start emulators that are stopped when the session ends at the latest."""
    if [back_end.id for back_end in BACK_ENDS] == ["swarm"]:
        request.getfixturevalue("swarm_of_all_images")
    started: list[RunningEmulator] = []

    def start(runtime: str, *, state_dir: Path | None = None, port: int = 0, warm: bool = True) -> RunningEmulator:
        state_dir = state_dir or tmp_path_factory.mktemp("emulator") / "state"
        emulator = RunningEmulator(state_dir, runtime=runtime, port=port, warm=warm)
        started.append(emulator)
        return emulator

    yield start
    for emulator in started:
        emulator.stop()


@pytest.fixture(scope="session")
def granted_namespaces() -> None:
    """Skip where there can be no engines in networks of their own, but never where CI is set."""
    if (refusal := find_refusal()) is not None:
        if os.environ.get("CI"):
            pytest.fail(f"In CI the tests of a Swarm must run: {refusal}.")
        pytest.skip(refusal)


@pytest.fixture(scope="session")
def swarm_nodes(granted_namespaces: None) -> Iterator[SwarmNodes]:
    """Two engines of their own, joined as a Swarm, for the tests that do not stop one."""
    with tempfile.TemporaryDirectory(prefix="smd-") as folder:  # sockets have short paths
        nodes = SwarmNodes(Path(folder) / "swarm", in_memory=True)
        nodes.start()
        yield nodes
        nodes.stop()


@pytest.fixture(scope="session")
def swarm_nodes_with_rules(swarm_nodes: SwarmNodes) -> SwarmNodes:
    """Those engines, with the image of the built-in rules: small, and a Python of its own.

    The manager calls it by another's name, too, for tests that only ask which image a name stands for.
    """
    image = "smdebug-emulator/sagemaker-debugger-rules"
    swarm_nodes.load(f"{image}:latest")
    with closing(swarm_nodes.manager.connect()) as api:
        api.tag(image, "smdebug-emulator/pytorch-training", "latest")
    return swarm_nodes


@pytest.fixture(scope="session")
def swarm_of_all_images(granted_namespaces: None) -> Iterator[None]:
    """Two engines joined as a Swarm in place of the machine's own, with all images that it has built, and their bases.

    The folder of temporary files is what all nodes see. Where DOCKER_HOST is set, it is that of a Swarm already.
    """
    if "DOCKER_HOST" in os.environ:
        yield
        return
    with closing(docker.from_env()) as engine:
        images = [tag for image in engine.images.list("smdebug-emulator/*") for tag in image.tags]
    with tempfile.TemporaryDirectory(prefix="smd-") as folder, pytest.MonkeyPatch.context() as patch:
        nodes = SwarmNodes(Path(folder) / "swarm")
        nodes.start()
        try:
            nodes.load("smdebug-emulator/sagemaker-debugger-rules:latest")
            nodes.load(*images, onto=[nodes.manager])
            patch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
            patch.setenv("SMDEBUG_EMULATOR_SHARED_FOLDER", tempfile.gettempdir())
            yield
        finally:
            patch.undo()
            nodes.stop()


@pytest.fixture(scope="session", params=BACK_ENDS)
def emulator(
    request: pytest.FixtureRequest, start_emulator: Callable[..., RunningEmulator]
) -> Iterator[RunningEmulator]:
    """One emulator for each back end, shared by all tests that do not stop it."""
    running = start_emulator(request.param)
    yield running
    exit_code = running.stop()
    assert exit_code == 0, "the emulator did not stop cleanly"
