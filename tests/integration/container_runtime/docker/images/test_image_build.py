"""Tests of the built images: their labels and contents."""

import json
import subprocess
import sys
import threading
import uuid
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from container_runtime.docker.border import connect
from container_runtime.docker.engine import DockerEngine
from container_runtime.docker.images.image_build import build_images, find_stale, plan_builds
from container_runtime.file_lock import hold_lock
from container_runtime.images.catalogue import IMAGE_LABEL, KEY_LABEL, ImageCatalogue, ImageDefinition
from container_runtime.images.lock_files import INSTALLER_MARK, read_requirements
from container_runtime.images.wheelhouse import (
    FOR_GPUS,
    IMAGE_PYTHON,
    build_training_toolkit,
    fetch_wheels,
    key_of_requirements,
)
from container_runtime.runtime import ContainerRuntimeError, EngineUnavailableError, Exit, WheelhouseError
from container_runtime.spec import ContainerSpec

pytestmark = pytest.mark.slow


@pytest.mark.docker
def test_images_carry_what_their_definitions_say() -> None:
    api = connect()
    try:
        for build in (each for each in plan_builds(ImageCatalogue()) if not each.definition.on_demand):
            config = api.inspect_image(build.name)["Config"]
            assert tuple(config["Entrypoint"] or ()) == build.definition.entrypoint
            environment = dict(entry.split("=", 1) for entry in config["Env"])
            assert build.definition.environment.items() <= environment.items()
            assert config["Labels"][IMAGE_LABEL] == build.definition.name
            assert len(config["Labels"][KEY_LABEL]) == 16
    finally:
        api.close()


@pytest.fixture
def engine() -> Iterator[DockerEngine]:
    runtime = DockerEngine(f"test-{uuid.uuid4().hex[:12]}")
    yield runtime
    for container in runtime.find({}):
        runtime.remove(container.id)
    runtime.close()


def run(engine: DockerEngine, image: str, source: str) -> tuple[Exit | None, list[str]]:
    spec = ContainerSpec(
        name=f"test-{uuid.uuid4().hex[:12]}", image=image, entrypoint=("python", "-c"), command=(source,)
    )
    container = engine.start(spec)
    lines = [line.text for line in engine.logs(container)]
    return engine.wait(container, 60), lines


@pytest.mark.docker
@pytest.mark.parametrize("image", ["sagemaker-debugger-rules", "sagemaker-debugger-rule-evaluator"])
def test_rule_images_hold_smdebug_and_no_framework(engine: DockerEngine, image: str) -> None:
    """Of what is looked for only pip, which a custom rule's requirements.txt needs."""
    source = """
import importlib.util, boto3, crc32c, numpy, smdebug
print([name for name in ("torch", "flask", "moto", "emulator", "pip") if importlib.util.find_spec(name)])
"""
    assert run(engine, image, source) == (Exit(0), ["['pip']"])


@pytest.mark.docker
def test_training_image_holds_toolkit_framework_and_the_start_up_file(engine: DockerEngine) -> None:
    source = """
import importlib.metadata, importlib.util, pathlib, shutil, sysconfig
import boto3, smdebug
import sagemaker_training.entry_point
# To import it takes seconds: the demo trains with it.
assert all(map(importlib.util.find_spec, ("sklearn", "torch")))
print(importlib.metadata.version("torch").split("+")[0], shutil.which("train"))
site = pathlib.Path(sysconfig.get_path("purelib"))
print((site / "smdebug_autoload.pth").exists(), (site / "wheels").exists(), pathlib.Path("/wheels").exists())
import gethostname
try:
    gethostname.call("x")
except NotImplementedError as error:
    print(error)
"""
    ended, lines = run(engine, "pytorch-training", source)
    assert (ended, lines[:2]) == (Exit(0), ["2.13.0 /opt/venv/bin/train", "True False False"])
    assert [line.endswith("without the C extension that MPI jobs need.") for line in lines[2:]] == [True]


# Compilers, what compiles with them, caches, and what is left of the build; and what is installed.
LOOK_INTO = """
import importlib.metadata, json, pathlib, shutil, sys
tools = "gcc g++ cc clang ld as make cmake cargo uv".split()
found = list(filter(shutil.which, tools))
for folder in ("/wheels", "/uv", "/var/cache/apt/archives", "/var/lib/apt/lists", "/root", "/usr/include", "/home"):
    files = [str(path) for path in pathlib.Path(folder).rglob("*") if path.is_file()]
    found += [path for path in files if not path.startswith(("/root/.bash", "/root/.profile"))]
for line in pathlib.Path("/var/lib/dpkg/status").read_text().splitlines():
    if line.startswith("Package: ") and line.endswith(("-dev", "build-essential")):
        found.append(line)
installed = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions(path=[sys.argv[1]])}
print(json.dumps([found, installed]))
"""


@pytest.mark.docker
@pytest.mark.parametrize("definition", ImageCatalogue().select(()), ids=lambda definition: definition.name)
def test_an_image_holds_what_is_locked_and_nothing_to_compile_with(
    engine: DockerEngine, definition: ImageDefinition
) -> None:
    spec = ContainerSpec(
        name=f"test-{uuid.uuid4().hex[:12]}",
        image=definition.name,
        entrypoint=("python", "-c"),
        command=(LOOK_INTO, "/opt/venv/lib/python3.11/site-packages"),
    )
    container = engine.start(spec)
    (line,) = (line.text for line in engine.logs(container))
    found, installed = json.loads(line)
    assert found == []
    lines = (line for line in read_requirements(definition, IMAGE_PYTHON) if not line.endswith(INSTALLER_MARK))
    locked = dict(line.split()[0].split("==") for line in lines)
    names = ((str(canonicalize_name(name)), version) for name, version in installed.items() if name != "smdebug")
    present = {name: version.partition("+cpu")[0] for name, version in names}
    # Of a wheel for GPUs, and of what that needs, nothing is there where pip found the one for the processor.
    locked = {name: version.partition("+cpu")[0] for name, version in locked.items() if not FOR_GPUS.match(name)}
    assert {name: version for name, version in present.items() if not FOR_GPUS.match(name)} == locked


@pytest.mark.docker
def test_lambda_image_holds_the_runtime_client(engine: DockerEngine) -> None:
    assert run(engine, "lambda", "import awslambdaric, boto3")[0] == Exit(0)


@pytest.mark.docker
def test_unknown_name_says_which_there_are() -> None:
    with pytest.raises(ContainerRuntimeError, match=r"no-such.*pytorch-training"):
        build_images(["no-such"])


@pytest.mark.docker
def test_a_second_builder_waits_for_the_first(tmp_path: Path) -> None:
    """The lock is taken before anything is built; a definition without requirements keeps the build short."""
    checkout = write_checkout(tmp_path, "FROM ${BASE}\n")
    said: list[str] = []
    waits = threading.Event()

    def report(_name: str, text: str) -> None:
        said.append(text)
        if "waiting" in text:
            waits.set()

    with hold_lock(checkout / ".cache" / "images.lock"):
        builder = threading.Thread(target=build_ignoring_failure, args=(checkout, report))
        builder.start()
        assert waits.wait(60)
        assert said == ["waiting for another build"]
    builder.join(400)
    assert not builder.is_alive()


def build_ignoring_failure(checkout: Path, report: object) -> None:
    with pytest.raises(ContainerRuntimeError):
        build_images(report=report, root=checkout, cache=checkout / ".cache")  # type: ignore[arg-type]


def write_checkout(folder: Path, dockerfile: str) -> Path:
    (folder / "smdebug").mkdir()
    (folder / "smdebug" / "autoload.pth").touch()
    (folder / "rules_images" / "base").mkdir(parents=True)
    (folder / "rules_images" / "base" / "install.sh").write_text("echo 'No space left'\nexit 41\n")
    image = folder / "rules_images" / "test-image"
    image.mkdir()
    (image / "Dockerfile").write_text(f"ARG BASE\n{dockerfile}")
    (image / "image.toml").write_text('name = "smdebug-emulator-test"\n')
    # As if they had been fetched: these builds need no network.
    wheels = folder / ".cache" / "wheels" / key_of_requirements(())
    wheels.mkdir(parents=True)
    (wheels / "requirements.txt").touch()
    return folder


@pytest.mark.docker
def test_failing_build_shows_its_last_lines(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path, "FROM ${BASE}\n")
    with pytest.raises(
        ContainerRuntimeError, match=r"(?s)Building smdebug-emulator/base:.*exit code 41.*No space left"
    ):
        build_images(root=checkout, cache=checkout / ".cache")
    api = connect()
    try:
        # What was there before is still there.
        stale = find_stale(api, plan_builds(ImageCatalogue()))
        assert all(api.images(build.name) for build in stale if not build.definition.on_demand)
    finally:
        api.close()


def test_build_without_an_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no-engine.sock")
    with pytest.raises(EngineUnavailableError, match="smdebug-emulator engine start"):
        build_images()


@pytest.mark.nightly
def test_toolkit_wheel_is_pure_and_can_be_imported(tmp_path: Path) -> None:
    wheel = build_training_toolkit(tmp_path / "wheels")
    assert wheel.name.endswith("-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert not list((tmp_path / "unpacked").rglob("*.so"))
    source = "import gethostname; gethostname.call('x')"
    done = subprocess.run(
        [sys.executable, "-S", "-c", source],
        env={"PYTHONPATH": str(tmp_path / "unpacked")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert "without the C extension" in done.stderr


def test_pip_that_fails_shows_its_last_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(WheelhouseError, match=r"(?s)pip download.*failed for.*no-such-package"):
        fetch_wheels(["no-such-package==1"], tmp_path)
