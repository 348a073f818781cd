"""Contract tests of the container runtime interface, run on every back end."""

import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import docker
import psutil
import pytest

from container_runtime.back_ends import RuntimeOptions, Traits, load_back_end
from container_runtime.contract.fixtures import Target, make_runtime, runtime, shared, traits  # noqa: F401 - fixtures
from container_runtime.contract.programs import (
    DEADLINE_SECONDS,
    IMAGE,
    MEBIBYTE,
    in_container,
    python,
    run,
)
from container_runtime.contract.test_ends_and_usage import *
from container_runtime.contract.test_found_again import *
from container_runtime.contract.test_logs import *
from container_runtime.contract.test_networks import *
from container_runtime.contract.test_refusals import *
from container_runtime.contract.test_stop_and_remove import *
from container_runtime.contract.test_surroundings import *
from container_runtime.images.catalogue import ImageCatalogue, local_name
from container_runtime.meter import Load
from container_runtime.runtime import (
    STARTED_COLD,
    ContainerRuntime,
    Exit,
    LogLine,
)
from container_runtime.spec import ContainerSpec, Mount
from emulator.jobs.runs.measuring.machine import describe_load
from tests.contract.docker_runtime import make_docker_runtime
from tests.quick_images import QuickToImport
from tests.waiting import wait_until


class DockerWithSpares(Target):
    """Docker that gives spare containers away, wherever it can."""

    def open(self) -> ContainerRuntime:
        from container_runtime.docker.engine import DockerEngine
        from container_runtime.docker.spares.spares import SpareOptions

        class WaitingEngine(DockerEngine):
            def start(self, spec: ContainerSpec) -> str:
                if self.keep_ready(spec, 600.0):
                    wait_until(lambda: self.is_ready(spec))
                return super().start(spec)

            def logs(self, container_id: str) -> Iterator[LogLine]:
                return (line for line in super().logs(container_id) if not line.text.startswith(STARTED_COLD))

        folder = self.options.state_dir
        spares = SpareOptions(folder / "spares", memory_bytes=4096 * MEBIBYTE)
        return WaitingEngine(
            self.options.instance_id, catalogue=QuickToImport(), sidecars=folder / "sidecars", spares=spares
        )


LIKE_DOCKER = {"docker", "docker-spares", "swarm", "swarm-carrying"}
# Volumes are the node's, and its files are in memory here: nothing goes to a disk that could be counted.
# What is brought to the node as /tmp, home and packages of pip's stays there.
CARRYING = replace(load_back_end("swarm").traits, counts_disk=False, returns_scratch=False)


@pytest.fixture(params=["process", *(pytest.param(name, marks=pytest.mark.docker) for name in sorted(LIKE_DOCKER))])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Target:
    """Each back end of ours; that of a Swarm with a folder that all nodes see, and with none."""
    options = RuntimeOptions(tmp_path / "state", shared_folder=tmp_path)
    if request.param == "docker-spares":
        return DockerWithSpares("docker", options, load_back_end("docker").traits)
    if not request.param.startswith("swarm"):
        return Target(request.param, options, load_back_end(request.param).traits)
    nodes = request.getfixturevalue("kept_agents")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
    options.state_dir.mkdir()
    (options.state_dir / "swarm").symlink_to(nodes.folder / "key")
    if request.param == "swarm":
        return Target("swarm", options, load_back_end("swarm").traits)
    return Target("swarm", replace(options, shared_folder=None), CARRYING)


@pytest.mark.nightly  # by day, test_usage_and_meter_of_a_running_container reads the same counters
def test_a_known_load_is_measured_as_psutil_does(runtime: ContainerRuntime, traits: Traits, shared: Mount) -> None:
    """One core busy, 500 MB held, 20 MB written for each second of work: in rates between two readings."""
    token = f"load-{uuid.uuid4().hex}"
    source = f"""
import os, pathlib, sys, time
held = bytearray(b"x") * 500_000_000
pathlib.Path({in_container(runtime, shared, "ready")}).touch()
while not pathlib.Path({in_container(runtime, shared, "go")}).exists():
    time.sleep(0.01)
began = time.process_time()
with open({in_container(runtime, shared, "written")}, "wb") as file:
    for turn in range(1, 21):
        while time.process_time() - began < turn / 10:
            pass
        file.write(held[:2_000_000])
        file.flush()
        os.fsync(file.fileno())
pathlib.Path({in_container(runtime, shared, "worked")}).touch()
time.sleep(600)
"""
    container = runtime.start(python(source, mounts=(shared,), environment={"TOKEN": token}))
    meter = runtime.open_meter(container)
    assert meter is not None
    wait_until((shared.source / "ready").exists)

    def find_process() -> psutil.Process | None:
        for each in psutil.process_iter(["environ", "memory_info"]):
            if (each.info["environ"] or {}).get("TOKEN") == token and each.info["memory_info"].rss > 500_000_000:
                return each
        return None

    process = wait_until(find_process)
    assert process is not None

    def read() -> tuple[Load, Any, float, int, float]:
        load, machine, now = meter.read(), meter.read_machine(), time.monotonic()
        assert load is not None
        times = process.cpu_times()
        return load, machine, times.user + times.system, process.io_counters().write_bytes, now

    first = read()
    (shared.source / "go").touch()
    wait_until((shared.source / "worked").exists)
    last = read()
    seconds = last[4] - first[4]
    figures = list(describe_load((first[0], first[1]), (last[0], last[1]), seconds, 1_000_000_000))
    busy = sum(each.value for each in figures if each.dimension == "CPUUtilization")
    by_name = {each.name: each.value for each in figures}
    # The counters of both are in hundredths of a second; two readings lie some milliseconds apart.
    assert busy * seconds / 100 == pytest.approx(last[2] - first[2], rel=0.03, abs=0.05)
    assert last[2] - first[2] >= 1.5
    assert by_name["MemoryUsedPercent"] == pytest.approx(process.memory_full_info().pss / 10_000_000, rel=0.1)
    assert by_name["MemoryUsedPercent"] >= 50
    written = by_name["WriteThroughputInBytesPerSecond"] * seconds
    assert written == pytest.approx(last[3] - first[3], rel=0.05)
    assert written == pytest.approx(40_000_000 if traits.counts_disk else 0, rel=0.1)
    runtime.remove(container)


def test_limits_that_only_an_engine_keeps(runtime: ContainerRuntime, shared: Mount) -> None:
    outside = f"/var/tmp/out-of-a-test-{uuid.uuid4().hex}"
    source = f"""
import pathlib
pathlib.Path({in_container(runtime, shared, "out")}).touch()
try:
    pathlib.Path({outside!r}).touch()
    pathlib.Path({outside!r}).unlink()
except OSError as error:
    print(error.strerror)
"""
    container = runtime.start(python(source, mounts=(shared,), read_only_root=True, cpus=1))
    lines = [line.text for line in runtime.logs(container)]
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)
    assert lines == (["Read-only file system"] if runtime.name in LIKE_DOCKER else [])
    if runtime.name in LIKE_DOCKER:
        with closing(docker.DockerClient(os.environ.get("DOCKER_HOST"))) as client:
            if runtime.name == "docker":
                limit = client.api.inspect_container(container)["HostConfig"]["NanoCpus"]
            else:
                task = client.api.inspect_service(container)["Spec"]["TaskTemplate"]
                limit = task["Resources"]["Limits"].get("NanoCPUs", 0)
        assert limit == (0 if os.cpu_count() == 1 else 10**9)


USES_OF_VISION_AND_AUDIO = """
import torch, torchaudio, torchvision
from torchvision import io, ops

boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
print(ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]), 0.5).tolist())
picture = torch.ones(1, 1, 32, 32, requires_grad=True)
pooled = ops.roi_align(picture, [boxes[2:]], output_size=5, sampling_ratio=2)
pooled.sum().backward()
print(pooled.detach().unique().tolist(), picture.grad.sum().item())
network = torchvision.models.resnet18(weights=None)
network(torch.rand(2, 3, 64, 64)).sum().backward()
print(all(parameter.grad is not None for parameter in network.parameters()))
image = torch.randint(0, 256, (3, 8, 8), dtype=torch.uint8)
print(torch.equal(io.decode_png(io.encode_png(image)), image), list(io.decode_jpeg(io.encode_jpeg(image)).shape))
print(list(torchaudio.transforms.MelSpectrogram(n_mels=32)(torch.rand(16000)).shape))
halved = torchaudio.functional.lfilter(torch.tensor([1.0, 0, 0]), torch.tensor([1.0, -0.5]), torch.tensor([1.0, 0]))
print(halved.tolist())
"""


# A Swarm's nodes have the small image of the rules by this name, too: to bring this one takes a minute.
@pytest.mark.parametrize(
    "target",
    ["process", pytest.param("docker", marks=pytest.mark.docker)],
    indirect=True,
)
@pytest.mark.nightly
def test_training_image_computes_with_torchvision_and_torchaudio(runtime: ContainerRuntime) -> None:
    """What is compiled in both of them, on the processor."""
    ended, lines = run(runtime, python(USES_OF_VISION_AND_AUDIO, image="pytorch-training"))
    expected = ["[0, 2]", "[1.0] 25.0", "True", "True [3, 8, 8]", "[32, 81]", "[1.0, 0.5, 0.25]"]
    assert (ended, lines) == (Exit(0), expected)


@pytest.mark.parametrize("target", [pytest.param("docker", marks=pytest.mark.docker)], indirect=True)
def test_training_image_has_opencv(runtime: ContainerRuntime) -> None:
    uses = """
import cv2, numpy
picture = numpy.zeros((9, 9, 3), "uint8")
picture[4, 4] = 255
encoded = cv2.imencode(".png", picture)[1]
print((cv2.imdecode(encoded, cv2.IMREAD_COLOR) == picture).all(), cv2.GaussianBlur(picture, (3, 3), 0)[4, 4].tolist())
"""
    assert run(runtime, python(uses, image="pytorch-training")) == (Exit(0), ["True [64, 64, 64]"])


# What a container writes to


@pytest.fixture(scope="module")
def build_image_with_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Builds an image with files below /opt/ml, made of ours, once on each engine."""
    built: dict[str | None, str] = {}

    def build() -> str:
        engine = os.environ.get("DOCKER_HOST")
        if engine not in built:
            tag = f"image-with-files:{uuid.uuid4().hex[:12]}"
            context = tmp_path_factory.mktemp("context")
            write_image_with_files(context)
            with closing(docker.DockerClient(engine)) as client:
                client.images.build(path=str(context), tag=tag, network_mode="none", rm=True, forcerm=True)
            built[engine] = tag
        return built[engine]

    yield build
    for engine, tag in built.items():
        with closing(docker.DockerClient(engine)) as client:
            client.images.remove(tag, force=True)


def write_image_with_files(context: Path) -> None:
    found = ImageCatalogue().find(IMAGE)
    assert found is not None
    for name in ("code/train.py", "code/sub/data", "model/weights", "input/config/hyperparameters.json"):
        (context / "ml" / name).parent.mkdir(parents=True, exist_ok=True)
        (context / "ml" / name).write_text(f"image's {name}")
    (context / "ml" / "code" / "run").write_text('#!/bin/sh\necho runs "$@"\n')
    (context / "ml" / "code" / "run").chmod(0o755)
    (context / "ml" / "code" / "sub" / "data").chmod(0o444)
    (context / "ml" / "code" / "sub").chmod(0o555)
    (context / "ml" / "link").symlink_to("/etc/hostname")
    (context / "ml" / "staged").symlink_to("/etc")
    (context / "Dockerfile").write_text(f"FROM {local_name(found[0])}\nCOPY ml /opt/ml\n")


@pytest.fixture
def image_with_files(target: Target, build_image_with_files: Callable[[], str]) -> str:
    if target.name == "process":
        pytest.skip("a local process has no image")
    return build_image_with_files()


def test_files_of_the_image_are_beside_a_mount(
    runtime: ContainerRuntime, image_with_files: str, shared: Mount, tmp_path: Path
) -> None:
    """They may be written, and another container of the image finds them as they were."""
    (shared.source / "model").mkdir()
    (shared.source / "input" / "config").mkdir(parents=True)
    (shared.source / "staged").mkdir()
    (shared.source / "staged" / "file").write_text("staged")
    mount = Mount(shared.source, "/opt/ml", own=("model", "input"))
    source = """
import os, pathlib
ml = pathlib.Path("/opt/ml")
print(sorted(str(path.relative_to(ml)) for path in ml.rglob("*")), os.readlink(ml / "link"))
print((ml / "code/train.py").read_text(), (ml / "code/sub/data").read_text())
for name in ("code/train.py", "code/sub/data", "code/sub/new", "code/__pycache__", "new", "model/new"):
    (ml / name).write_text("the container's")
"""
    ended, lines = run(runtime, python(source, image=image_with_files, mounts=(mount,), read_only_root=True))
    assert ended == Exit(0), lines
    seen = [
        "code",
        "code/run",
        "code/sub",
        "code/sub/data",
        "code/train.py",
        "input",
        "input/config",
        "link",
        "model",
        "staged",
    ]
    assert lines == [f"{[*seen, 'staged/file']} /etc/hostname", "image's code/train.py image's code/sub/data"]
    assert (shared.source / "model" / "new").read_text() == "the container's"

    source = "from pathlib import Path; print(sorted(path.name for path in Path('/opt/ml').rglob('*e*')))"
    for own, seen in (((), ["code", "hyperparameters.json", "model", "staged", "weights"]), (None, [])):
        folder = tmp_path / f"other-{own}"
        folder.mkdir()
        other = Mount(folder, "/opt/ml", own=own)
        assert run(runtime, python(source, image=image_with_files, mounts=(other,)))[1] == [str(seen)]
    with closing(docker.from_env()) as client:
        left = client.containers.list(all=True, filters={"ancestor": image_with_files, "status": "created"})
    assert left == []


def test_a_program_below_a_mount_may_be_the_images(
    runtime: ContainerRuntime, image_with_files: str, shared: Mount
) -> None:
    spec = python("and words", image=image_with_files, entrypoint=("/opt/ml/code/run",))
    mount = Mount(shared.source, "/opt/ml", own=("model",))
    assert run(runtime, replace(spec, mounts=(mount,)))[1] == ["runs and words"]


@pytest.mark.docker
def test_docker_gives_no_file_away_that_has_another_name(tmp_path: Path, shared: Mount) -> None:
    """It may be the emulator's own; and no link is followed."""
    runtime = make_docker_runtime(tmp_path, f"test-{uuid.uuid4().hex[:12]}")
    ours = tmp_path / "ours"
    ours.write_text("whole")
    (shared.source / "second-name").hardlink_to(ours)
    (shared.source / "link").symlink_to(ours)
    (shared.source / "folder").mkdir()
    (shared.source / "folder" / "theirs").write_text("")
    source = """
for name in ("second-name", "link", "folder/theirs"):
    try:
        open("/opt/ml/" + name, "w").write("changed")
        print(name)
    except OSError:
        pass
"""
    try:
        _, lines = run(runtime, python(source, mounts=(shared,)))
    finally:
        for container in runtime.find({}):
            runtime.remove(container.id)
        runtime.close()
    owner = ours.stat()
    assert (owner.st_uid, owner.st_gid) == (os.getuid(), os.getgid())
    if os.getuid() == 0:
        assert (ours.read_text(), lines) == ("whole", ["folder/theirs"])
