"""Contract tests of the container runtime interface, run on every back end."""

import fcntl
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
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
    start_and_await_line,
)
from container_runtime.contract.test_ends_and_usage import *
from container_runtime.contract.test_found_again import *
from container_runtime.contract.test_logs import *
from container_runtime.contract.test_networks import *
from container_runtime.contract.test_refusals import *
from container_runtime.contract.test_stop_and_remove import *
from container_runtime.contract.test_surroundings import *
from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.meter import Load
from container_runtime.process import loopback_network
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import (
    MAX_NETWORK_HOSTS,
    STARTED_COLD,
    ContainerRuntime,
    ContainerRuntimeError,
    Exit,
    LogLine,
    NetworkExhaustedError,
)
from container_runtime.spec import ContainerSpec, Mount
from emulator.jobs.runs.measuring.machine import describe_load
from tests.waiting import wait_until


def make_docker_runtime(folder: Path, instance: str) -> ContainerRuntime:
    from container_runtime.docker.engine import DockerEngine

    return DockerEngine(instance, sidecars=folder / "sidecars")


def make_open_docker_runtime(_folder: Path, instance: str) -> ContainerRuntime:
    """Make the one whose containers are on a bridge, as with --allow-internet."""
    from container_runtime.docker.engine import DockerEngine

    return DockerEngine(instance)


class QuickToImport(ImageCatalogue):
    """This project's images, of which spare containers import next to nothing: not what is imported is the subject."""

    def __iter__(self) -> Iterator[ImageDefinition]:
        return (
            replace(each, warm_modules=("json",), warm_hook="") if each.warm_modules else each
            for each in super().__iter__()
        )


class DockerWithSpares(Target):
    """Docker that gives spare containers away, wherever it can."""

    def open(self) -> ContainerRuntime:
        from container_runtime.docker.engine import DockerEngine
        from container_runtime.docker.spares.spares import SpareOptions

        class WaitingEngine(DockerEngine):
            def start(self, spec: ContainerSpec) -> str:
                if self.keep_ready(spec, DEADLINE_SECONDS):
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
    source = f"""
import pathlib
pathlib.Path({in_container(runtime, shared, "out")}).touch()
try:
    pathlib.Path("/var/tmp/out-of-a-test").touch()
    pathlib.Path("/var/tmp/out-of-a-test").unlink()
except OSError as error:
    print(error.strerror)
"""
    container = runtime.start(python(source, mounts=(shared,), read_only_root=True, cpus=1))
    lines = [line.text for line in runtime.logs(container)]
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)
    assert lines == (["Read-only file system"] if runtime.name in LIKE_DOCKER else [])
    if runtime.name in LIKE_DOCKER:
        api = runtime._api  # type: ignore[attr-defined]
        if runtime.name == "docker":
            limit = api.inspect_container(container)["HostConfig"]["NanoCpus"]
        else:
            task = api.inspect_service(container)["Spec"]["TaskTemplate"]
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
@pytest.mark.parametrize("target", ["process", pytest.param("docker", marks=pytest.mark.docker)], indirect=True)
def test_training_image_computes_with_torchvision_and_torchaudio(runtime: ContainerRuntime) -> None:
    """What is compiled in both of them, on the processor."""
    ended, lines = run(runtime, python(USES_OF_VISION_AND_AUDIO, image="pytorch-training"))
    expected = ["[0, 2]", "[1.0] 25.0", "True", "True [3, 8, 8]", "[32, 81]", "[1.0, 0.5, 0.25]"]
    assert (ended, lines) == (Exit(0), expected)


# One back end only


def test_loopback_network_holds_so_many_hosts_and_no_more(tmp_path: Path) -> None:
    runtime = LocalProcesses(tmp_path / "processes")
    hosts = [f"algo-{number}" for number in range(1, MAX_NETWORK_HOSTS + 2)]
    network = runtime.create_network("full", hosts[:-1], {})
    assert len(set(network.addresses.values())) == MAX_NETWORK_HOSTS
    with socket.create_server((network.addresses[hosts[-2]], 0)):
        pass  # the last one is an address of this machine, too
    with pytest.raises(ContainerRuntimeError, match="251 hosts: 250 fit"):
        runtime.create_network("too-full", hosts, {})


def test_loopback_ranges_that_run_out_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_network, "_SECOND", range(64, 65))
    monkeypatch.setattr(loopback_network, "_THIRD", range(1))
    runtime = LocalProcesses(tmp_path / "processes")
    runtime.create_network("first", ["algo-1"], {})
    with pytest.raises(NetworkExhaustedError, match="wait until some jobs have ended"):
        runtime.create_network("second", ["algo-1"], {})
    runtime.remove_network("first")
    runtime.create_network("second", ["algo-1"], {})


@pytest.mark.docker
@pytest.mark.parametrize(
    "explanation",
    [
        "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network",
        "all predefined address pools have been fully subnetted",
    ],
)
def test_docker_address_pools_that_run_out_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, explanation: str
) -> None:
    """The engine's refusal is made up: to use its pools up would leave none to whoever shares the engine."""
    import docker.errors
    from docker import APIClient

    runtime = make_docker_runtime(tmp_path, f"test-{uuid.uuid4().hex[:12]}")

    def refuse(*_: Any, **__: Any) -> None:
        raise docker.errors.APIError("Internal Server Error", explanation=explanation)

    try:
        monkeypatch.setattr(APIClient, "create_network", refuse)
        with pytest.raises(NetworkExhaustedError, match="docker network prune"):
            runtime.create_network(name_network(), ["algo-1"], {})
        assert runtime.find_networks({}) == []
    finally:
        runtime.close()


@pytest.mark.docker
def test_docker_networks_are_apart(tmp_path: Path) -> None:
    runtime = make_open_docker_runtime(tmp_path, f"test-{uuid.uuid4().hex[:12]}")
    networks = [runtime.create_network(name_network(), ["algo-1", "algo-2"], {}) for _ in range(2)]
    listen = """
import socket
server = socket.create_server(("", 7777))
print(socket.gethostbyname("algo-1"), flush=True)
server.accept()
"""
    try:
        server = runtime.start(python(listen, network=networks[0].name, hostname="algo-1"))
        address = next(runtime.logs(server)).text
        ask = f"""
import socket
for host in ({address!r}, "algo-1"):
    try:
        socket.create_connection((host, 7777), 1)
        print("reached")
    except OSError as error:
        print(type(error).__name__)
"""
        # On a network of its own the name means that network's host, of which nothing runs; elsewhere it means nothing.
        for name, named in ((networks[1].name, "TimeoutError"), (None, "gaierror")):
            _, lines = run(runtime, python(ask, network=name, hostname="algo-2"))
            assert lines == ["TimeoutError", named], name
        _, lines = run(runtime, python(ask, network=networks[0].name, hostname="algo-2"))
        assert lines[0] == "reached"
    finally:
        for container in runtime.find({}):
            runtime.remove(container.id)
        for network in networks:
            runtime.remove_network(network.name)
        runtime.close()


def test_process_back_end_leaves_no_file_and_no_zombie(tmp_path: Path) -> None:
    runtime = LocalProcesses(tmp_path / "processes")
    source = "import os; print(os.environ['HOME']); print(os.environ['TMPDIR']); print(os.getppid())"
    spec = python(source)
    _, lines = run(runtime, spec)
    runtime.remove(spec.name)
    assert not any(Path(folder).exists() for folder in lines[:2])
    assert list((tmp_path / "processes").iterdir()) == []
    assert not Path(f"/proc/{lines[2]}").exists()


@pytest.mark.parametrize("killed", ["supervisor", "its guardian", "both"])
def test_process_ends_with_a_supervisor_that_is_killed(tmp_path: Path, shared: Mount, killed: str) -> None:
    """And so does what it has started, be it a daemon in a session of its own."""
    runtime = LocalProcesses(tmp_path / "processes")
    source = f"""
import fcntl, os, time
lock = open({in_container(runtime, shared, "held")}, "w")
fcntl.flock(lock, fcntl.LOCK_EX)
parent, ready = os.getppid(), os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.write(ready[1], b"x")
    time.sleep(60)
os.read(ready[0], 1)
print(parent, flush=True)
time.sleep(60)
"""
    container = runtime.start(python(source, mounts=(shared,)))
    supervisor = int(next(runtime.logs(container)).text)
    guardian = int((tmp_path / "processes" / container / "supervisor.pid").read_text())
    victims = {"supervisor": [supervisor], "its guardian": [guardian], "both": [supervisor, guardian]}[killed]
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, neither sees the other's end
        for victim in victims:
            os.kill(victim, number)
    if killed == "both":  # the kernel ends no more than the one process: the next look at the container ends the rest
        assert LocalProcesses(tmp_path / "processes").wait(container, DEADLINE_SECONDS) is not None

    def is_free() -> bool:
        with (shared.source / "held").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    wait_until(is_free, "the end of the supervised process")
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(128 + signal.SIGKILL)
    runtime.remove(container)


def test_supervisor_of_a_sleeping_process_sleeps_too(tmp_path: Path) -> None:
    """Its process measures it: of a core, the supervisor takes less than a hundredth."""
    source = """
import os, time
def read_seconds():
    ticks = open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
before = read_seconds()
time.sleep(5)
print(read_seconds() - before)
"""
    runtime = LocalProcesses(tmp_path / "processes")
    spec = python(source, memory_bytes=8 * 1024 * MEBIBYTE)
    ended, lines = run(runtime, spec)
    runtime.remove(spec.name)
    assert ended == Exit(0)
    assert float(lines[0]) <= 0.05


def test_process_back_end_clears_a_half_started_container_away(tmp_path: Path) -> None:
    half = tmp_path / "processes" / "half-started"
    half.mkdir(parents=True)
    (tmp_path / "scratch").mkdir()
    (half / "container.json").write_text(
        json.dumps({"name": "half-started", "labels": {}, "scratch": str(tmp_path / "scratch")})
    )
    (half / "lock").touch()
    assert LocalProcesses(tmp_path / "processes").find({}) == []
    assert not half.exists()
    assert not (tmp_path / "scratch").exists()


def test_process_back_end_clears_away_what_a_killed_start_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, temporary = tmp_path / "processes", tmp_path / "temporary"
    temporary.mkdir()
    source = f"""
import os, pathlib
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.process_builder import ProcessBuilder
from container_runtime.spec import ContainerSpec
ProcessBuilder.build = lambda *_: os._exit(9)
LocalProcesses(pathlib.Path({str(folder)!r})).start(ContainerSpec("killed", {IMAGE!r}, ("true",)))
"""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    assert subprocess.run([sys.executable, "-c", source], env=environment, timeout=60, check=False).returncode == 9
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    (starting,) = folder.iterdir()
    (temporary / starting.name.replace(".starting-", "smdebug-emulator-") / "home").mkdir()
    LocalProcesses(folder)
    assert starting.exists(), "it may be another thread's, just now"
    os.utime(starting, (0, 0))
    LocalProcesses(folder)
    assert list(folder.iterdir()) == list(temporary.iterdir()) == []


@pytest.mark.docker
def test_docker_container_has_no_privilege(tmp_path: Path, shared: Mount) -> None:
    runtime = make_docker_runtime(tmp_path, f"test-{uuid.uuid4().hex[:12]}")
    source = """
import os
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(status["CapEff"].strip(), status["CapBnd"].strip(), status["NoNewPrivs"].strip(), os.getuid(), os.getgid())
print(os.path.exists("/var/run/docker.sock"))
try:
    open("/opt/ml/file", "w")
except OSError as exc:
    print(exc.strerror)
"""
    spec = python(source, mounts=(Mount(shared.source, "/opt/ml", read_only=True),))
    try:
        _, lines = run(runtime, spec)
    finally:
        for container in runtime.find({}):
            runtime.remove(container.id)
        runtime.close()
    user = f"{os.getuid()} {os.getgid()}" if os.getuid() else "1000 1000"
    assert lines == [f"{0:016x} {0:016x} 1 {user}", "False", "Read-only file system"]


# What a container writes to


@pytest.fixture
def image_with_files(target: Target, tmp_path: Path) -> Iterator[str]:
    """An image with files below /opt/ml, made of ours."""
    if target.name == "process":
        pytest.skip("a local process has no image")
    found = ImageCatalogue().resolve(IMAGE)
    assert found is not None
    context = tmp_path / "context"
    for name in ("code/train.py", "code/sub/data", "model/weights", "input/config/hyperparameters.json"):
        (context / "ml" / name).parent.mkdir(parents=True, exist_ok=True)
        (context / "ml" / name).write_text(f"image's {name}")
    (context / "ml" / "code" / "run").write_text('#!/bin/sh\necho runs "$@"\n')
    (context / "ml" / "code" / "run").chmod(0o755)
    (context / "ml" / "code" / "sub" / "data").chmod(0o444)
    (context / "ml" / "code" / "sub").chmod(0o555)
    (context / "ml" / "link").symlink_to("/etc/hostname")
    (context / "ml" / "staged").symlink_to("/etc")
    (context / "Dockerfile").write_text(f"FROM {found.local}\nCOPY ml /opt/ml\n")
    tag = f"image-with-files:{uuid.uuid4().hex[:12]}"
    with closing(docker.from_env()) as client:
        client.images.build(path=str(context), tag=tag, network_mode="none", rm=True, forcerm=True)
        yield tag
        client.images.remove(tag, force=True)


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
def test_a_newer_build_of_an_image_brings_its_own_files(tmp_path: Path) -> None:
    runtime = make_docker_runtime(tmp_path, f"test-{uuid.uuid4().hex[:12]}")
    found = ImageCatalogue().resolve(IMAGE)
    assert found is not None
    tag = f"built-again:{uuid.uuid4().hex[:12]}"
    source = "from pathlib import Path; print([path.read_text() for path in Path('/opt/ml').rglob('file')])"
    context = tmp_path / "context"
    (context / "ml").mkdir(parents=True)
    try:
        with closing(docker.from_env()) as client:
            for number, copied in enumerate(("", "COPY ml /opt/ml", "COPY ml /opt/ml")):
                (context / "Dockerfile").write_text(f"FROM {found.local}\nLABEL number={number}\n{copied}\n")
                (context / "ml" / "file").write_text(str(number))
                client.images.build(path=str(context), tag=tag, network_mode="none", rm=True, forcerm=True)
                folder = tmp_path / str(number)
                folder.mkdir()
                ended, lines = run(runtime, python(source, image=tag, mounts=(Mount(folder, "/opt/ml", own=()),)))
                assert (ended, lines) == (Exit(0), [str([str(number)] if copied else [])])
    finally:
        for container in runtime.find({}):
            runtime.remove(container.id)
        runtime.close()
        with closing(docker.from_env()) as client:
            client.images.remove(tag, force=True)


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


@pytest.mark.docker
def test_docker_container_has_bounds(tmp_path: Path) -> None:
    """It cannot fill the tables of processes and of open files, nor the disk with core files or its log."""
    from docker import APIClient

    from container_runtime.docker.engine import DockerEngine

    runtime = DockerEngine(f"test-{uuid.uuid4().hex[:12]}")
    source = """
import resource, threading, time
try:
    for _ in range(200):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
except RuntimeError:
    pass
limits = [resource.getrlimit(each) for each in (resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)]
print(threading.active_count() < 100, *limits, flush=True)
"""
    spec = python(source, max_processes=100)
    files = min(16_384, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    try:
        assert run(runtime, spec) == (Exit(0), [f"True (0, 0) ({files}, {files})"])
        with APIClient() as api:
            log = api.inspect_container(spec.name)["HostConfig"]["LogConfig"]
        assert log == {"Type": "json-file", "Config": {"max-size": "1g", "max-file": "2"}}
    finally:
        for container in runtime.find({}):
            runtime.remove(container.id)
        runtime.close()


@pytest.mark.docker
def test_docker_container_of_another_user_has_a_home(tmp_path: Path) -> None:
    from container_runtime.docker.engine import DockerEngine

    runtime = DockerEngine(f"test-{uuid.uuid4().hex[:12]}", user=(12345, 12345))
    source = """
import getpass, pathlib, subprocess, sys, sysconfig
(pathlib.Path.home() / "file").write_text("x")
(pathlib.Path(sysconfig.get_path("purelib")) / "installed.py").write_text("x")  # as pip would
print(getpass.getuser())
"""
    try:
        assert run(runtime, python(source)) == (Exit(0), ["12345"])
    finally:
        for container in runtime.find({}):
            runtime.remove(container.id)
        runtime.close()


@pytest.mark.docker
def test_docker_network_goes_with_the_runtime_but_not_under_its_containers(tmp_path: Path) -> None:
    from container_runtime.docker.border import connect

    instance = f"test-{uuid.uuid4().hex[:12]}"
    runtime = make_open_docker_runtime(tmp_path, instance)
    container = start_and_await_line(runtime, "import time; print('ready', flush=True); time.sleep(60)")
    runtime.close()
    api = connect()
    try:
        assert api.networks(names=[f"smdebug-emulator-{instance}"])
        again = make_open_docker_runtime(tmp_path, instance)
        assert again.host_address == runtime.host_address
        again.remove(container)
        again.close()
        assert not api.networks(names=[f"smdebug-emulator-{instance}"])
    finally:
        api.close()
