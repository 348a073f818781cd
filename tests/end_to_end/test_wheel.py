"""Tests of the wheel in an empty environment, outside the checkout."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from container_runtime.docker.images.image_build import build_images, plan_builds
from container_runtime.file_lock import hold_lock
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.images.wheelhouse import fetch_wheels
from examples.frameworks.job import BUCKET
from examples.frameworks.xgboost.algorithm import ALGORITHM, build_algorithm_request, stage_cancer
from sdk_compat.demo.training_job import build_rule, build_training_job
from tests.boto3_client import make_client
from tests.waiting import wait_until
from tests.wheel import CHECKOUT, build_wheel

# The environment of a training image takes half a minute to build. It is kept, and stays good for whatever wheel is
# installed in the same place: its smdebug is a link there.
KEPT = CHECKOUT / ".cache" / "wheel-test"
PLANNING = (
    "from container_runtime.docker.images.image_build import plan_builds; "
    "from container_runtime.images.catalogue import ImageCatalogue"
)
OURS = ("smdebug", "emulator", "container_runtime", "sdk_compat", "rules_images")


@dataclass
class Installed:
    """An environment that holds the wheel, used from a folder that holds nothing."""

    bin: Path
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        """Of its processes: nothing that leads to the checkout or its interpreter."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        folders = {"XDG_CACHE_HOME": str(KEPT / "cache"), "XDG_STATE_HOME": str(self.folder / "state")}
        return {**kept, **folders, "PATH": f"{self.bin}:/usr/bin:/bin"}

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=self.folder,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )

    @property
    def site_packages(self) -> Path:
        return self.bin.parent / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"

    def list_files(self) -> set[Path]:
        return {path for path in self.site_packages.rglob("*") if "__pycache__" not in path.parts}


def make_venv(wheel: Path, *options: str) -> Path:
    """Make an environment that holds the wheel, and return its interpreter."""
    shutil.rmtree(KEPT / "venv", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", KEPT / "venv"], check=True)
    python = KEPT / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-compile", "--no-index", *options, f"{wheel}[emulator]"], check=True
    )
    return python


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    built = build_wheel(tmp_path_factory.mktemp("wheel") / "built")
    KEPT.mkdir(parents=True, exist_ok=True)
    with hold_lock(KEPT / "lock"):
        yield built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, beside links to the packages that are installed here; of this project none, nor what leads to it."""
    made = Installed(make_venv(wheel, "--no-deps").parent, tmp_path_factory.mktemp("elsewhere"))
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        there = made.site_packages / path.name
        if not there.exists() and path.suffix != ".pth" and not path.name.startswith(("smdebug", "__pycache__")):
            there.symlink_to(path)
    return made


@pytest.fixture
def installed_with_its_packages(wheel: Path, tmp_path: Path) -> Installed:
    """The wheel, with no packages but those that it names."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    needed = fetch_wheels(project["dependencies"] + project["optional-dependencies"]["emulator"], CHECKOUT / ".cache")
    python = make_venv(wheel, "--find-links", str(needed))
    cache = KEPT / "cache" / "smdebug-emulator"
    cache.mkdir(parents=True, exist_ok=True)
    if not (cache / "wheels").is_symlink():
        (cache / "wheels").symlink_to(CHECKOUT / ".cache" / "wheels")
    return Installed(python.parent, tmp_path)


@contextmanager
def started(installed: Installed, runtime: str) -> Iterator[Any]:
    """A function that makes clients of an emulator that runs from the wheel."""
    command = [str(installed.bin / "smdebug-emulator"), "start", "--port", "0", "--runtime", runtime]
    with (
        (installed.folder / "log").open("w") as log,
        subprocess.Popen(
            command, cwd=installed.folder, env=installed.variables, stdout=subprocess.PIPE, stderr=log, text=True
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        assert " answers. " in line, (installed.folder / "log").read_text()
        try:
            yield partial(make_client, line.split()[0])
        finally:
            process.terminate()
            assert process.wait(60) == 0


def test_it_has_every_file_of_its_packages(wheel: Path) -> None:
    """Of the console it has what is built, and not the sources. One file is moved to where Python looks for it."""
    left_out = {"__pycache__", "built", "web"}
    files = (path for name in OURS for path in (CHECKOUT / name).rglob("*") if path.is_file())
    own = {str(path.relative_to(CHECKOUT)) for path in files if not left_out & set(path.parts)}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    built = {name.rpartition(".")[2] for name in names if name.startswith("emulator/console/built/")}
    assert built == {"js", "css", "json"}
    moved = own - {"smdebug/autoload.pth"} | {"smdebug_autoload.pth", "smdebug_emulator.py"}
    assert {name for name in names if not name.startswith("emulator/console/built/")} == moved


def test_its_packages_and_images_are_its_own(installed: Installed) -> None:
    """Neither the wheel nor the checkout calls images out of date that the other has built."""
    paths = f"import {', '.join(OURS)}; print({', '.join(f'*{each}.__path__' for each in OURS)})"
    keys = "print(*sorted(f'{build.name}={build.key}' for build in plan_builds(ImageCatalogue())))"
    ran = installed.run("python", "-c", f"{paths}; {PLANNING}; {keys}")
    assert ran.returncode == 0, ran.stderr
    folders, images = (line.split() for line in ran.stdout.splitlines())
    assert folders == [str(installed.site_packages / name) for name in OURS]
    assert images == sorted(f"{build.name}={build.key}" for build in plan_builds(ImageCatalogue()))


def test_images_are_listed(installed: Installed) -> None:
    ran = installed.run("smdebug-emulator", "images", "list")
    assert ran.returncode == 0, ran.stderr
    assert "pytorch-training" in ran.stdout
    assert "this interpreter" in ran.stdout


def run_job(installed: Installed, request: dict[str, Any], stage: Callable[[Any], object]) -> None:
    """A container, and the rule that judges it, find all they need; nothing is written beside the packages."""
    before = installed.list_files()
    parameters = {"collection_names": "losses", "num_steps": "10", "diff_percent": "0.1"}
    request["DebugRuleConfigurations"] = [build_rule("LossNotDecreasing", **parameters)]
    name = request["TrainingJobName"]
    with started(installed, "process") as client:
        stage(client("s3"))
        sagemaker = client("sagemaker")
        sagemaker.create_training_job(**request)

        def describe() -> dict[str, Any]:
            found: dict[str, Any] = sagemaker.describe_training_job(TrainingJobName=name)
            return found

        def judge() -> str:
            return str(describe()["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"])

        wait_until(lambda: describe()["TrainingJobStatus"] != "InProgress" and judge() != "InProgress", "the job's end")
        assert (describe()["TrainingJobStatus"], judge()) == ("Completed", "NoIssuesFound"), describe().get(
            "FailureReason"
        )
        saved = client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"tensors/{name}/debug-output/index/")
        assert saved["KeyCount"] >= 4
    assert installed.list_files() == before


# An entrypoint's argument has one line of at most 256 characters.
SCRIPT = (
    "import torch; n = torch.nn.Linear(3, 1); o = torch.optim.SGD(n.parameters(), 0.01); l = torch.nn.MSELoss(); "
    "x, y = torch.ones(4, 3), torch.ones(4, 1); "
    "[(o.zero_grad(), l(n(x), y).backward(), o.step()) for _ in range(40)]"
)


# Of these lines each is an argument, too. They save what a hook would, without the seconds of a framework's import.
LINES = """
import json, os; folder = json.load(open(os.environ["SMDEBUG_CONFIG_FILE_PATH"]))["LocalPath"]
from smdebug.config.collection import Collection
from smdebug.config.collection_manager import CollectionManager
from smdebug.writing.file_writer import FileWriter
manager = CollectionManager(); manager.add(Collection("losses", include_regex="loss")); manager.set_num_workers(1)
manager.export(folder, "worker_0_collections.json")
for step in range(40):
    with FileWriter(folder, "worker_0", step) as writer: writer.write_tensor(40.0 - step, "loss")
""".strip().splitlines()
RUN = "import sys; exec('\\n'.join(sys.argv[1:]))"
ENTRYPOINTS = {"torch": ["python", "-c", SCRIPT], "no framework": ["python", "-c", RUN, *LINES]}


@pytest.mark.nightly  # by day the wheel has every file, and its programs and images are its own
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ENTRYPOINTS)
def test_a_job_in_this_interpreter(installed: Installed, kind: str) -> None:
    request = build_training_job(
        f"from-a-wheel-{kind.replace(' ', '-')}",
        image="pytorch-training:2.13.0-cpu-py311",
        hyperparameters={},
        channels=(),
        collections={"losses": {"save_interval": "1"}},
        bucket=BUCKET,
    )
    request["AlgorithmSpecification"]["ContainerEntrypoint"] = ENTRYPOINTS[kind]
    run_job(installed, request, lambda s3: s3.create_bucket(Bucket=BUCKET))


@pytest.mark.docker
@pytest.mark.timeout(600)
def test_images_are_built_from_the_wheel(installed: Installed) -> None:
    """The rules' image, on its base: its smdebug is the wheel's, which a file shows that only the wheel has."""
    name = "sagemaker-debugger-rules"
    only_there = installed.site_packages / "smdebug" / "of_the_wheel.txt"
    only_there.touch()
    try:
        ran = installed.run("smdebug-emulator", "images", "build", "--runtime", "docker", name)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        source = "import pathlib, smdebug; print(pathlib.Path(smdebug.__file__).with_name('of_the_wheel.txt').exists())"
        command = ["docker", "run", "--rm", "--entrypoint", "python", f"smdebug-emulator/{name}:latest", "-c", source]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        assert shown.stdout == "True\n", shown.stderr
    finally:
        only_there.unlink()
        build_images([name])


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_job_with_no_packages_but_its_own(installed_with_its_packages: Installed) -> None:
    """Last, since its environment takes the place of the other; the one that the job needs is built from wheels."""
    request = build_algorithm_request("from-a-wheel", ALGORITHM)
    run_job(installed_with_its_packages, request, stage_cancer)
    assert list((KEPT / "cache" / "smdebug-emulator" / "venvs").glob("sagemaker-xgboost-*/complete"))
