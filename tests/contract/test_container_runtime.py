"""Contract tests of the container runtime interface, run on every back end."""

from __future__ import annotations

import fcntl
import http.server
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import psutil
import pytest

from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.process import loopback_network
from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import (
    MAX_LINE_BYTES,
    MAX_NETWORK_HOSTS,
    STARTED_COLD,
    ContainerNotFoundError,
    ContainerRuntimeError,
    ContainerStartError,
    Exit,
    ImageNotFoundError,
    NetworkExhaustedError,
)
from container_runtime.spec import ContainerSpec, Mount
from emulator.jobs.runs.measuring.machine import describe_load
from tests.small_wheel import write_wheel
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from container_runtime.meter import Load
    from container_runtime.runtime import ContainerRuntime, LogLine, Network

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"
DEADLINE_SECONDS = 60.0
MEBIBYTE = 1024 * 1024


def make_process_runtime(folder: Path, _instance: str) -> ContainerRuntime:
    return LocalProcesses(folder / "processes")


def make_docker_runtime(folder: Path, instance: str) -> ContainerRuntime:
    from container_runtime.docker.engine import DockerEngine

    return DockerEngine(instance, sidecars=folder / "sidecars")


def make_docker_runtime_with_spares(folder: Path, instance: str) -> ContainerRuntime:
    """Make the one that gives spare containers away, wherever it can."""
    from container_runtime.docker.engine import DockerEngine
    from container_runtime.docker.spares import SpareOptions

    class WithSpares(DockerEngine):
        def start(self, spec: ContainerSpec) -> str:
            if self.keep_ready(spec, DEADLINE_SECONDS):
                wait_until(lambda: self.is_ready(spec))
            return super().start(spec)

        def logs(self, container_id: str) -> Iterator[LogLine]:
            return (line for line in super().logs(container_id) if not line.text.startswith(STARTED_COLD))

    return WithSpares(
        instance, sidecars=folder / "sidecars", spares=SpareOptions(folder / "spares", memory_bytes=4096 * MEBIBYTE)
    )


def make_open_docker_runtime(_folder: Path, instance: str) -> ContainerRuntime:
    """Make the one whose containers are on a bridge, as with --allow-internet."""
    from container_runtime.docker.engine import DockerEngine

    return DockerEngine(instance)


def make_swarm_runtime(_folder: Path, instance: str) -> ContainerRuntime:
    from container_runtime.swarm.engine import SwarmEngine

    return SwarmEngine(instance, Path(os.environ["KEY_OF_THE_AGENTS"]))


def make_carrying_swarm_runtime(_folder: Path, instance: str) -> ContainerRuntime:
    """Make the one whose nodes see none of this machine's folders."""
    from container_runtime.swarm.engine import SwarmEngine

    return SwarmEngine(instance, Path(os.environ["KEY_OF_THE_AGENTS"]), carry=True)


MAKERS: dict[str, Callable[[Path, str], ContainerRuntime]] = {
    "process": make_process_runtime,
    "docker": make_docker_runtime,
    "docker-spares": make_docker_runtime_with_spares,
    "swarm": make_swarm_runtime,
    "swarm-carrying": make_carrying_swarm_runtime,
}
LIKE_DOCKER = {"docker", "docker-spares", "swarm", "swarm-carrying"}
# Volumes are the node's, and its files are in memory here: nothing goes to a disk that could be counted.
WRITING_TO_MEMORY = {"swarm-carrying"}
# /tmp, home and packages of pip's are brought to the node, and stay there.
KEEPING_SCRATCH = {"swarm-carrying"}


@pytest.fixture(params=["process", *(pytest.param(name, marks=pytest.mark.docker) for name in sorted(LIKE_DOCKER))])
def back_end(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name: str = request.param
    if name.startswith("swarm"):
        nodes = request.getfixturevalue("kept_agents")
        monkeypatch.setenv("DOCKER_HOST", f"unix://{nodes.manager.socket}")
        monkeypatch.setenv("KEY_OF_THE_AGENTS", str(nodes.folder / "key"))
    return name


@pytest.fixture
def make_runtime(back_end: str, tmp_path: Path) -> Iterator[Callable[[], ContainerRuntime]]:
    """Makes runtimes that see the same containers, as an emulator before and after its restart does."""
    instance = f"test-{uuid.uuid4().hex[:12]}"
    made: list[ContainerRuntime] = []

    def make() -> ContainerRuntime:
        made.append(MAKERS[back_end](tmp_path, instance))
        return made[-1]

    yield make
    for container in made[0].find({}) if made else ():
        made[0].remove(container.id)
    assert not made or made[0].find({}) == []
    for network in made[0].find_networks({}) if made else ():
        made[0].remove_network(network.name)
    assert not made or made[0].find_networks({}) == []
    for runtime in made:
        runtime.close()


@pytest.fixture
def runtime(make_runtime: Callable[[], ContainerRuntime]) -> ContainerRuntime:
    return make_runtime()


@pytest.fixture
def shared(tmp_path: Path) -> Mount:
    """A folder that container and test both see."""
    folder = tmp_path / "shared"
    folder.mkdir()
    return Mount(folder, "/opt/ml")


def python(source: str, **changes: Any) -> ContainerSpec:
    """A container that runs ``source``."""
    arguments = {"name": f"test-{uuid.uuid4().hex[:12]}", "image": IMAGE, "entrypoint": ("python", "-c")}
    return ContainerSpec(**{**arguments, "command": (source,), **changes})


def run(runtime: ContainerRuntime, spec: ContainerSpec) -> tuple[Exit, list[str]]:
    """Start, read the log to its end, wait."""
    container = runtime.start(spec)
    lines = [line.text for line in runtime.logs(container)]
    ended = runtime.wait(container, DEADLINE_SECONDS)
    assert ended is not None
    return ended, lines


def in_container(runtime: ContainerRuntime, mount: Mount, name: str) -> str:
    return json.dumps(runtime.path_in_container(mount, name))


# How a container ends


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_code(runtime: ContainerRuntime, code: int) -> None:
    assert run(runtime, python(f"raise SystemExit({code})"))[0] == Exit(code)


def test_death_by_signal_counts_from_128(runtime: ContainerRuntime) -> None:
    ended, _ = run(runtime, python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert ended == Exit(128 + signal.SIGKILL)


def test_wait_gives_up_after_its_timeout_and_can_be_asked_again(runtime: ContainerRuntime, shared: Mount) -> None:
    flag = in_container(runtime, shared, "go")
    source = f"import os, time\nwhile not os.path.exists({flag}): time.sleep(0.01)"
    container = runtime.start(python(source, mounts=(shared,)))
    assert runtime.wait(container, 0.05) is None
    (shared.source / "go").touch()
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)
    assert runtime.wait(container) == Exit(0)


def test_memory_limit(runtime: ContainerRuntime) -> None:
    source = "import time; block = bytearray(400 << 20); time.sleep(60)"
    ended, _ = run(runtime, python(source, memory_bytes=128 * MEBIBYTE))
    assert ended == Exit(128 + signal.SIGKILL, out_of_memory=True)


def test_memory_that_forked_workers_share_counts_once(runtime: ContainerRuntime) -> None:
    source = """
import os, time
block = bytearray(b"x") * (150 << 20)
workers = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        time.sleep(0.4)  # long enough to be looked at
        os._exit(0)
    workers.append(pid)
for worker in workers:
    os.waitpid(worker, 0)
"""
    assert run(runtime, python(source, memory_bytes=400 * MEBIBYTE))[0] == Exit(0)


def test_usage_of_a_running_container(runtime: ContainerRuntime, shared: Mount) -> None:
    source = f"""
import os, pathlib, time
block = bytearray(b"x") * (100 << 20)
pid = os.fork()
if pid == 0:
    while time.process_time() < 1:
        pass
    os._exit(0)
os.waitpid(pid, 0)
pathlib.Path({in_container(runtime, shared, "worked")}).touch()
time.sleep(600)
"""
    container = runtime.start(python(source, mounts=(shared,)))
    wait_until((shared.source / "worked").exists)
    usage = runtime.read_usage(container)
    assert usage is not None
    assert 1 <= usage.cpu_seconds < 60, "the processes that have ended count"
    assert 100 * MEBIBYTE <= usage.memory_bytes < 180 * MEBIBYTE
    runtime.stop(container, 0.0)
    assert runtime.read_usage(container) is None
    runtime.remove(container)
    with pytest.raises(ContainerNotFoundError):
        runtime.read_usage(container)


def test_a_meter_reads_what_a_container_takes(runtime: ContainerRuntime, back_end: str, shared: Mount) -> None:
    """Processor time of processes that have ended, memory that is held, bytes written: as its own, and for as long."""
    written = in_container(runtime, shared, "written")
    source = f"""
import os, pathlib, time
block = bytearray(b"x") * (100 << 20)
if (pid := os.fork()) == 0:
    while time.process_time() < 1:
        pass
    with open({written}, "wb") as file:
        file.write(block[: 40 << 20])
        file.flush()
        os.fsync(file.fileno())
    os._exit(0)
os.waitpid(pid, 0)
pathlib.Path({in_container(runtime, shared, "worked")}).touch()
time.sleep(600)
"""
    container = runtime.start(python(source, mounts=(shared,)))
    meter = runtime.open_meter(container)
    assert meter is not None
    first = meter.read()
    assert first is not None
    wait_until((shared.source / "worked").exists)

    def holds_its_block() -> Load | None:
        load = meter.read()
        assert load is not None
        return load if 100 * MEBIBYTE <= load.memory_bytes < 180 * MEBIBYTE else None

    load = wait_until(holds_its_block, meter.read)
    assert load is not None
    assert 1 <= load.cpu_seconds < 60, "the processes that have ended count"
    assert load.cpu_seconds >= first.cpu_seconds
    if back_end not in WRITING_TO_MEMORY:
        assert 40 * MEBIBYTE <= load.written_bytes < 60 * MEBIBYTE
        assert load.io_operations >= 1
    assert (load.received_bytes is None) == (load.sent_bytes is None) == (runtime.name == "process")
    runtime.stop(container, 0.0)
    assert meter.read() is None
    runtime.remove(container)
    with pytest.raises(ContainerNotFoundError):
        runtime.open_meter(container)


def test_a_known_load_is_measured_as_psutil_does(runtime: ContainerRuntime, back_end: str, shared: Mount) -> None:
    """One core busy, 500 MB held, 20 MB written for each second of work: in rates between two readings."""
    token = f"load-{uuid.uuid4().hex}"
    source = f"""
import os, pathlib, sys, time
held = bytearray(b"x") * 500_000_000
pathlib.Path({in_container(runtime, shared, "ready")}).touch()
while not pathlib.Path({in_container(runtime, shared, "go")}).exists():
    time.sleep(0.01)
with open({in_container(runtime, shared, "written")}, "wb") as file:
    for turn in range(1, 21):
        while time.process_time() < turn / 10:
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
    assert written == pytest.approx(0 if back_end in WRITING_TO_MEMORY else 40_000_000, rel=0.1)
    runtime.remove(container)


# Logs


def test_log_has_every_line_from_the_first_to_a_last_one_without_newline(runtime: ContainerRuntime) -> None:
    before_ms = time.time() * 1000
    source = "import sys; print('first'); print(); print('third', flush=True); sys.stdout.write('last')"
    container = runtime.start(python(source))
    lines = list(runtime.logs(container))
    assert [line.text for line in lines] == ["first", "", "third", "last"]
    assert all(before_ms - 1000 <= line.timestamp_ms <= time.time() * 1000 + 1000 for line in lines)
    assert list(runtime.logs(container)) == lines


def test_log_holds_both_streams(runtime: ContainerRuntime) -> None:
    _, lines = run(runtime, python("import sys; print('out'); print('err', file=sys.stderr)"))
    assert sorted(lines) == ["err", "out"]


def test_log_shows_bytes_that_are_not_text(runtime: ContainerRuntime) -> None:
    source = r"import sys; sys.stdout.buffer.write(b'a\xff\xfeb\n\xc3\xa9\rx\n')"
    assert run(runtime, python(source))[1] == ["a\ufffd\ufffdb", "é\rx"]


def test_log_is_followed_while_the_container_runs(runtime: ContainerRuntime, shared: Mount) -> None:
    flag = in_container(runtime, shared, "go")
    source = f"import os, time\nprint('running', flush=True)\nwhile not os.path.exists({flag}): time.sleep(0.01)"
    container = runtime.start(python(source, mounts=(shared,)))
    lines = runtime.logs(container)
    assert next(lines).text == "running"
    assert runtime.wait(container, 0) is None
    (shared.source / "go").touch()
    assert list(lines) == []


def test_log_keeps_the_order_of_many_lines(runtime: ContainerRuntime) -> None:
    _, lines = run(runtime, python("for number in range(20000): print('line', number)"))
    assert lines == [f"line {number}" for number in range(20000)]


def test_log_keeps_a_long_line_whole_and_cuts_an_endless_one(runtime: ContainerRuntime) -> None:
    source = f"import sys; sys.stdout.write('a' * 100_000 + '\\n' + 'b' * {MAX_LINE_BYTES + 5} + '\\n')"
    _, lines = run(runtime, python(source))
    assert lines[0] == "a" * 100_000
    assert "".join(lines[1:]) == "b" * (MAX_LINE_BYTES + 5)
    assert len(lines) > 2


# What a container sees


def test_environment_is_its_own(runtime: ContainerRuntime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the host")
    monkeypatch.setenv("SMDEBUG_TEST_LEAK", "of the host")
    source = "import json, os; print(json.dumps(dict(os.environ)))"
    _, lines = run(runtime, python(source, environment={"GIVEN": "a=b c", "LANG": "C"}))
    environment = json.loads(lines[0])
    assert "of the host" not in environment.values()
    assert environment["GIVEN"] == "a=b c"
    assert environment["LANG"] == "C"
    assert environment["PYTHONUNBUFFERED"] == "1"  # the image's own
    assert environment.get("HOME") != os.environ["HOME"] or runtime.name in LIKE_DOCKER


def test_home_and_temporary_folder_can_be_written(runtime: ContainerRuntime) -> None:
    source = """
import pathlib, tempfile
(pathlib.Path.home() / "file").write_text("x")
tempfile.NamedTemporaryFile().close()
print("written")
"""
    assert run(runtime, python(source)) == (Exit(0), ["written"])


def test_standard_input_is_empty(runtime: ContainerRuntime) -> None:
    assert run(runtime, python("import sys; print(repr(sys.stdin.read()))"))[1] == ["''"]


def test_mount_is_read_and_written_by_both_sides(runtime: ContainerRuntime, back_end: str, shared: Mount) -> None:
    (shared.source / "in").write_text("from the test")
    (shared.source / "sub").mkdir()
    source = f"""
import pathlib
text = pathlib.Path({in_container(runtime, shared, "in")}).read_text()
pathlib.Path({in_container(runtime, shared, "sub/out")}).write_text(text.upper())
"""
    assert run(runtime, python(source, mounts=(shared,)))[0] == Exit(0)
    out = shared.source / "sub" / "out"
    assert out.read_text() == "FROM THE TEST"
    # No container is root's: where that is who starts it, it gets a user of its own, and its folders.
    own = (1000, 1000) if back_end in LIKE_DOCKER and os.getuid() == 0 else (os.getuid(), os.getgid())
    assert (out.stat().st_uid, out.stat().st_gid) == own


def test_base_folder_of_the_toolkit_is_the_mount(runtime: ContainerRuntime, shared: Mount) -> None:
    (shared.source / "in").write_text("found")
    source = "import os; print(open(os.environ.get('SAGEMAKER_BASE_DIR', '/opt/ml') + '/in').read())"
    assert run(runtime, python(source, mounts=(shared,)))[1] == ["found"]


def test_mounts_are_found_at_their_targets(runtime: ContainerRuntime, shared: Mount, tmp_path: Path) -> None:
    if runtime.path_in_container(shared, "in") != "/opt/ml/in":
        pytest.skip("the kernel grants no namespaces")
    other = Mount(tmp_path / "other", "/opt/ml/other/deep", read_only=True)
    elsewhere = Mount(tmp_path / "elsewhere", "/new-in-root/data")
    for mount in (other, elsewhere):
        mount.source.mkdir()
        (mount.source / "in").write_text(mount.target)
    source = f"""
import json, os, pathlib, tempfile
pathlib.Path("/opt/ml/out").write_text(pathlib.Path("/opt/ml/other/deep/in").read_text())
pathlib.Path("/new-in-root/data/out").write_text(pathlib.Path("/new-in-root/data/in").read_text())
try:
    pathlib.Path("/opt/ml/other/deep/out").touch()
except OSError as error:
    print(error.strerror)
print(os.path.exists({str(tmp_path)!r}), "SAGEMAKER_BASE_DIR" in os.environ)
pathlib.Path("/tmp/mine").touch()
with tempfile.NamedTemporaryFile() as file:
    print(os.path.basename(file.name) in os.listdir("/tmp"))
print(json.dumps(os.listdir("/opt")))
"""
    ended, lines = run(runtime, python(source, mounts=(elsewhere, other, shared)))
    assert (ended, lines[:-1]) == (Exit(0), ["Read-only file system", "False False", "True"])
    assert (shared.source / "out").read_text() == other.target
    assert (elsewhere.source / "out").read_text() == elsewhere.target
    assert not Path("/tmp/mine").exists()
    assert not Path("/new-in-root").exists()
    if runtime.name == "process":
        assert set(json.loads(lines[-1])) == {path.name for path in Path("/opt").iterdir()} | {"ml"}


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


def test_a_local_process_stands_back_as_far_as_it_is_to(runtime: ContainerRuntime) -> None:
    """Behind other processes, and its session behind other sessions where the kernel groups them."""
    source = "import os; print(os.nice(0)); print(open('/proc/self/autogroup').read().split()[-1])"
    if not Path("/proc/self/autogroup").exists():
        source = "import os; print(os.nice(0), 5, sep='\\n')"
    (_, plain), (ended, lower) = (run(runtime, python(source, niceness=niceness)) for niceness in (0, 5))
    assert ended == Exit(0)
    if runtime.name in LIKE_DOCKER:
        assert lower == plain
    else:
        assert int(lower[0]) == min(19, int(plain[0]) + 5)
        # An ordinary user may be refused, who has told another session its niceness in the same tenth of a second.
        assert lower[1] == "5" or os.geteuid() != 0


def test_an_isolated_container_has_no_network_but_itself(runtime: ContainerRuntime) -> None:
    if isinstance(runtime, LocalProcesses) and not runtime.grant.network:
        pytest.skip("the kernel grants no namespaces")
    with socket.create_server((runtime.host_address, 0)) as server:
        source = f"""
import socket
with socket.create_server(("127.0.0.1", 0)) as own:
    socket.create_connection(own.getsockname(), 5).close()
print([name for _, name in socket.if_nameindex() if name == "lo" or name.startswith("e")])
try:
    socket.create_connection({server.getsockname()!r}, 5)
except OSError as error:
    print("not reached")
"""
        # A Swarm has a network for each task: here it is one that nobody else is on, and that leads nowhere.
        own = ["lo", "eth0"] if runtime.name == "swarm" else ["lo"]
        assert run(runtime, python(source, isolated=True)) == (Exit(0), [str(own), "not reached"])
        # The same source finds it where it is not isolated.
        taken: list[socket.socket] = []
        servers = {server.getsockname()[1]: taken.append}
        assert "not reached" not in run(runtime, python(source, servers=servers))[1]
        for each in taken:
            each.close()


def test_isolated_hosts_reach_each_other_only(runtime: ContainerRuntime) -> None:
    name, hosts = f"test-{uuid.uuid4().hex[:12]}", ["algo-1", "algo-2"]
    if isinstance(runtime, LocalProcesses) and not runtime.grant.network:
        pytest.skip("the kernel grants no namespaces")
    network = runtime.create_network(name, hosts, {}, isolated=True)
    with socket.create_server(("", 0)) as server:
        source = f"""
import socket, sys, threading
own, other = sys.argv[1:]
listening = socket.create_server((own, {network.rendezvous_port}))
threading.Thread(target=lambda: listening.accept()[0].sendall(own.encode())).start()
while True:
    try:
        connection = socket.create_connection((other, {network.rendezvous_port}), 5)
        break
    except OSError:
        pass
print("from", connection.recv(100).decode(), flush=True)
gateway = socket.gethostbyname(own).rpartition(".")[0] + ".1"
for address in ({runtime.host_address!r}, gateway if {runtime.name in LIKE_DOCKER} else "127.0.0.1"):
    try:
        socket.create_connection((address, {server.getsockname()[1]}), 5)
    except OSError:
        print("not reached")
"""
        containers = [
            runtime.start(
                # Names of hosts are Docker's; local processes go by addresses.
                python(
                    source,
                    command=(source, *(pair if runtime.name in LIKE_DOCKER else map(network.addresses.get, pair))),
                    hostname=pair[0],
                    network=network.name,
                    isolated=True,
                )
            )
            for pair in (hosts, hosts[::-1])
        ]
        lines = [[line.text for line in runtime.logs(container)] for container in containers]
    expected = hosts[::-1] if runtime.name in LIKE_DOCKER else [network.addresses[host] for host in hosts[::-1]]
    assert lines == [[f"from {other}", *["not reached"] * 2] for other in expected]
    for container in containers:
        runtime.remove(container)
    runtime.remove_network(name)
    assert runtime.find_networks({}) == [] or runtime.name in LIKE_DOCKER


def test_server_of_the_host_is_reached(runtime: ContainerRuntime) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    entrances: list[tuple[http.server.HTTPServer, threading.Thread]] = []

    def serve_too(listening: socket.socket) -> None:
        # What a container has in the server's place, where it has a network to itself.
        entrance = http.server.HTTPServer(("", 0), Handler, bind_and_activate=False)
        entrance.socket.close()
        entrance.socket = listening
        serving = threading.Thread(target=entrance.handle_request)
        serving.start()
        entrances.append((entrance, serving))

    with http.server.HTTPServer((runtime.host_address, 0), Handler) as server:
        runtime.offer(server.server_port, serve_too)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://{runtime.host_address}:{server.server_port}/"
        source = f"import urllib.request; print(urllib.request.urlopen({url!r}).read().decode())"
        assert run(runtime, python(source))[1] == ["hello"]
        server.shutdown()
    for entrance, serving in entrances:
        serving.join()
        entrance.server_close()


# Stop and remove


def start_and_await_line(runtime: ContainerRuntime, source: str, **changes: Any) -> str:
    container = runtime.start(python(source, **changes))
    assert next(iter(runtime.logs(container))).text == "ready"
    return container


def end_of(runtime: ContainerRuntime, container: str) -> Exit | None:
    """How a container ended that has ended already."""
    assert [found.running for found in runtime.find({})] == [False]
    return runtime.wait(container, DEADLINE_SECONDS)


def test_stop_lets_a_handler_of_sigterm_finish(runtime: ContainerRuntime) -> None:
    source = """
import signal, sys, time
def stop(*_):
    print("saving", flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(60)
"""
    container = start_and_await_line(runtime, source)
    runtime.stop(container, DEADLINE_SECONDS)
    assert end_of(runtime, container) == Exit(7)
    assert [line.text for line in runtime.logs(container)] == ["ready", "saving"]


def test_stop_kills_after_the_grace_time(runtime: ContainerRuntime) -> None:
    source = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""
    container = start_and_await_line(runtime, source)
    started = time.monotonic()
    runtime.stop(container, 0.3)
    assert 0.3 <= time.monotonic() - started < DEADLINE_SECONDS
    assert end_of(runtime, container) == Exit(128 + signal.SIGKILL)


def test_stop_is_idempotent(runtime: ContainerRuntime) -> None:
    container = start_and_await_line(runtime, "import time; print('ready', flush=True); time.sleep(60)")
    runtime.stop(container, DEADLINE_SECONDS)
    runtime.stop(container, DEADLINE_SECONDS)
    assert end_of(runtime, container) == Exit(128 + signal.SIGTERM)


def test_what_a_container_leaves_running_ends_with_it(runtime: ContainerRuntime, shared: Mount) -> None:
    held, ready = in_container(runtime, shared, "held"), in_container(runtime, shared, "ready")
    source = f"""
import fcntl, os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        lock = open({held}, "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        open({ready}, "w").close()
        time.sleep(600)
    os._exit(0)
while not os.path.exists({ready}):
    time.sleep(0.01)
"""
    assert run(runtime, python(source, mounts=(shared,)))[0] == Exit(0)
    with (shared.source / "held").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_remove_is_idempotent_and_forgets(runtime: ContainerRuntime) -> None:
    container = runtime.start(python("pass"))
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)
    runtime.remove(container)
    runtime.remove(container)
    assert runtime.find({}) == []
    for use in (runtime.wait, runtime.logs, lambda gone: runtime.stop(gone, 1)):
        with pytest.raises(ContainerNotFoundError, match=container[:12]):
            use(container)


def test_remove_kills_what_still_runs(runtime: ContainerRuntime, shared: Mount) -> None:
    source = f"""
import fcntl, time
lock = open({in_container(runtime, shared, "held")}, "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(60)
"""
    container = start_and_await_line(runtime, source, mounts=(shared,))
    runtime.remove(container)
    with (shared.source / "held").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while anybody holds it
    assert runtime.find({}) == []


def test_an_id_that_was_never_given_is_not_found(runtime: ContainerRuntime) -> None:
    for nothing in ("no-such-container", "../processes"):
        with pytest.raises(ContainerNotFoundError):
            runtime.wait(nothing)
    runtime.remove("no-such-container")


# Find again


def test_a_new_runtime_finds_containers_by_their_labels(make_runtime: Callable[[], ContainerRuntime]) -> None:
    old = make_runtime()
    labels = {"job": "one", "kind": "training"}
    running = start_and_await_line(old, "import time; print('ready', flush=True); time.sleep(60)", labels=labels)
    ended = old.start(python("print('done'); raise SystemExit(5)", labels={"job": "two", "kind": "training"}))
    assert old.wait(ended, DEADLINE_SECONDS) == Exit(5)
    new = make_runtime()
    found = {container.id: container for container in new.find({"kind": "training"})}
    assert {identity: container.running for identity, container in found.items()} == {running: True, ended: False}
    assert labels.items() <= found[running].labels.items()
    assert [container.id for container in new.find({"kind": "training", "job": "two"})] == [ended]
    assert new.find({"kind": "rule"}) == []
    assert new.wait(ended, DEADLINE_SECONDS) == Exit(5)
    assert [line.text for line in new.logs(ended)] == ["done"]
    new.stop(running, DEADLINE_SECONDS)
    assert old.wait(running, DEADLINE_SECONDS) == Exit(128 + signal.SIGTERM)


OWNER = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.contract.test_container_runtime import MAKERS, python
runtime = MAKERS[{back_end!r}](Path({folder!r}), {instance!r})
from container_runtime.spec import Mount
mount = Mount(Path({shared!r}), "/opt/ml")
flag = runtime.path_in_container(mount, "go")
source = f'''
import os, time
print("before", flush=True)
while not os.path.exists({{flag!r}}):
    time.sleep(0.01)
print("after")
raise SystemExit(9)
'''
print(runtime.start(python(source, mounts=(mount,), labels={{"job": "kept"}})), flush=True)
time.sleep(600)
"""


def test_container_outlives_an_owner_that_is_killed(back_end: str, tmp_path: Path, shared: Mount) -> None:
    instance = f"test-{uuid.uuid4().hex[:12]}"
    source = OWNER.format(
        root=str(Path(__file__).parents[2]),
        back_end=back_end,
        folder=str(tmp_path),
        instance=instance,
        shared=str(shared.source),
    )
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        container = owner.stdout.readline().strip()
        os.kill(owner.pid, signal.SIGKILL)
    runtime = MAKERS[back_end](tmp_path, instance)
    try:
        (found,) = runtime.find({"job": "kept"})
        assert (found.id, found.running) == (container, True)
        lines = runtime.logs(container)
        assert next(lines).text == "before"
        (shared.source / "go").touch()
        assert [line.text for line in lines] == ["after"]
        assert runtime.wait(container, DEADLINE_SECONDS) == Exit(9)
    finally:
        runtime.remove(container)
        runtime.close()


# Bad input


def test_unknown_image_says_what_there_is(runtime: ContainerRuntime) -> None:
    spec = python("pass", image="no-such-image-anywhere:1")
    for use in (lambda: runtime.resolve_image(spec.image), lambda: runtime.start(spec)):
        with pytest.raises(ImageNotFoundError, match=r"no-such-image-anywhere.*sagemaker-debugger-rules"):
            use()
    assert runtime.find({}) == []


def test_image_of_another_version_is_used_and_said(runtime: ContainerRuntime) -> None:
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
    resolved = runtime.resolve_image(image)
    assert resolved.requested == image
    assert resolved.substitution is not None
    assert "2.8.0-cpu-py312" in resolved.substitution
    assert runtime.describe_substitution(image) == resolved.substitution
    assert runtime.resolve_image(IMAGE).substitution is None
    assert runtime.describe_substitution(IMAGE) is None
    assert not runtime.has_image(image)


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
@pytest.mark.parametrize("back_end", ["process", pytest.param("docker", marks=pytest.mark.docker)], indirect=True)
def test_training_image_computes_with_torchvision_and_torchaudio(runtime: ContainerRuntime) -> None:
    """What is compiled in both of them, on the processor."""
    ended, lines = run(runtime, python(USES_OF_VISION_AND_AUDIO, image="pytorch-training"))
    expected = ["[0, 2]", "[1.0] 25.0", "True", "True [3, 8, 8]", "[32, 81]", "[1.0, 0.5, 0.25]"]
    assert (ended, lines) == (Exit(0), expected)


@pytest.mark.parametrize("program", ["no-such-program", "/no/such/program"])
def test_missing_entry_point_is_said_at_the_start(runtime: ContainerRuntime, program: str) -> None:
    spec = python("pass", entrypoint=(program,))
    with pytest.raises(ContainerStartError, match=program):
        runtime.start(spec)
    assert runtime.find({}) == []
    assert run(runtime, python("pass", name=spec.name))[0] == Exit(0)


def test_name_that_is_taken(runtime: ContainerRuntime) -> None:
    spec = python("pass")
    container = runtime.start(spec)
    with pytest.raises(ContainerStartError, match=spec.name):
        runtime.start(spec)
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)


def test_missing_folder_to_mount(runtime: ContainerRuntime, tmp_path: Path) -> None:
    with pytest.raises(ContainerStartError, match="nowhere"):
        runtime.start(python("pass", mounts=(Mount(tmp_path / "nowhere", "/opt/ml", own=()),)))
    assert not (tmp_path / "nowhere").exists()


# More than one


def test_two_run_at_once(runtime: ContainerRuntime, shared: Mount) -> None:
    def meet(mine: str, other: str) -> ContainerSpec:
        source = f"""
import os, time
open({in_container(runtime, shared, mine)}, "w").close()
deadline = time.monotonic() + {DEADLINE_SECONDS}
while not os.path.exists({in_container(runtime, shared, other)}):
    assert time.monotonic() < deadline
    time.sleep(0.01)
print({mine!r})
"""
        return python(source, mounts=(shared,))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, runtime, meet("a", "b"))
        second = pool.submit(run, runtime, meet("b", "a"))
        assert first.result() == (Exit(0), ["a"])
        assert second.result() == (Exit(0), ["b"])


def test_one_container_is_waited_for_and_read_by_many(runtime: ContainerRuntime) -> None:
    container = runtime.start(python("print('x' * 10); raise SystemExit(4)"))
    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(runtime.wait, container, DEADLINE_SECONDS) for _ in range(4)]
        logs = [pool.submit(lambda: [line.text for line in runtime.logs(container)]) for _ in range(4)]
        assert {wait.result() for wait in waits} == {Exit(4)}
        assert [log.result() for log in logs] == [["x" * 10]] * 4


# Networks

# Says hello to each host of a network on one port that every one of them listens on; prints who has answered.
NEIGHBOUR = """
import http.server, json, os, sys, threading, time, urllib.request
own, others, port = os.environ["OWN"], json.loads(os.environ["OTHERS"]), int(os.environ["PORT"])
class Handler(http.server.BaseHTTPRequestHandler):
    asked = set()
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(own.encode())
        Handler.asked.add(self.path)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer((own, port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
deadline = time.monotonic() + 60
def ask(other):
    while True:
        try:
            return urllib.request.urlopen(f"http://{other}:{port}/{own}", timeout=20).read().decode()
        except OSError:
            assert time.monotonic() < deadline, f"{other} does not answer"
            time.sleep(0.05)
assert [ask(other) for other in others] == others
while len(Handler.asked) < len(others):
    assert time.monotonic() < deadline, f"only {Handler.asked} have asked"
    time.sleep(0.05)
print("met", flush=True)
"""


def name_network() -> str:
    return f"test-{uuid.uuid4().hex[:12]}"


def start_neighbours(runtime: ContainerRuntime, network: Network, source: str = NEIGHBOUR) -> list[str]:
    return [
        runtime.start(
            python(
                source,
                network=network.name,
                hostname=host,
                environment={
                    "OWN": own,
                    "OTHERS": json.dumps([each for each in network.addresses.values() if each != own]),
                    "PORT": str(network.rendezvous_port),
                },
            )
        )
        for host, own in network.addresses.items()
    ]


def test_hosts_of_two_networks_meet_their_own_on_one_port(runtime: ContainerRuntime) -> None:
    hosts = ["algo-1", "algo-2"]
    networks = [runtime.create_network(name_network(), hosts, {}) for _ in range(2)]
    assert [list(network.addresses) for network in networks] == [hosts, hosts]
    containers = [container for network in networks for container in start_neighbours(runtime, network)]
    for container in containers:
        assert [line.text for line in runtime.logs(container)] == ["met"]
        assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)


# A Swarm gives a task its address when it is made: there hosts wait for each other's names, see the next test.
@pytest.mark.parametrize("back_end", ["process", pytest.param("docker", marks=pytest.mark.docker)], indirect=True)
def test_host_finds_the_others_before_they_run_and_after_their_end(runtime: ContainerRuntime) -> None:
    network = runtime.create_network(name_network(), ["algo-1", "algo-2"], {})
    found = []
    for host in ("algo-1", "algo-2", "algo-1"):
        source = f"import socket; [print(socket.gethostbyname(each)) for each in {list(network.addresses.values())}]"
        ended, lines = run(runtime, python(source, network=network.name, hostname=host))
        assert ended == Exit(0), lines
        found.append(lines)
        for container in runtime.find({}):
            runtime.remove(container.id)
    assert len(set(found[0])) == 2
    assert found[1:] == [found[0]] * 2


# Local processes go by addresses.
@pytest.mark.docker
@pytest.mark.parametrize("back_end", sorted(LIKE_DOCKER), indirect=True)
def test_program_begins_when_the_names_of_all_hosts_are_known(make_runtime: Callable[[], ContainerRuntime]) -> None:
    """Also that of the first host, long before the last one runs."""
    runtime, hosts = make_runtime(), ["algo-1", "algo-2"]
    network = runtime.create_network(name_network(), hosts, {})
    source = f"import socket, time; print(*map(socket.gethostbyname, {hosts}), flush=True); time.sleep(60)"
    containers = [runtime.start(python(source, network=network.name, hostname=host)) for host in hosts]
    first, second = (next(runtime.logs(container)).text for container in containers)
    assert first == second
    assert len(set(first.split())) == 2


def test_host_of_a_network_reaches_the_servers_of_this_machine(runtime: ContainerRuntime) -> None:
    network = runtime.create_network(name_network(), ["algo-1"], {})
    with socket.create_server((runtime.host_address, 0)) as server:
        address = server.getsockname()
        source = f"import os, socket; socket.create_connection({address!r}, 60); print(os.listdir('/sys/class/net'))"
        taken: list[socket.socket] = []
        servers = {address[1]: taken.append}
        ended, lines = run(runtime, python(source, network=network.name, hostname="algo-1", servers=servers))
    assert ended == Exit(0), lines
    for each in taken:
        each.close()
    assert network.interface in lines[0]


def test_network_is_found_by_its_labels_and_given_back(make_runtime: Callable[[], ContainerRuntime]) -> None:
    old, name = make_runtime(), name_network()
    old.create_network(name, ["algo-1"], {"job": "one", "kind": "training"})
    new = make_runtime()
    (found,) = new.find_networks({"kind": "training"})
    assert (found.name, found.labels["job"]) == (name, "one")
    assert new.find_networks({"kind": "training", "job": "two"}) == []
    new.remove_network(name)
    new.remove_network(name)
    assert old.find_networks({}) == []


def test_network_with_a_container_on_it_stays(runtime: ContainerRuntime) -> None:
    network = runtime.create_network(name_network(), ["algo-1"], {})
    source = "import time; print('ready', flush=True); time.sleep(60)"
    container = start_and_await_line(runtime, source, network=network.name, hostname="algo-1")
    with pytest.raises(ContainerRuntimeError, match=network.name):
        runtime.remove_network(network.name)
    runtime.remove(container)
    runtime.remove_network(network.name)
    assert runtime.find_networks({}) == []


def test_network_name_that_is_taken(runtime: ContainerRuntime) -> None:
    name = name_network()
    runtime.create_network(name, ["algo-1"], {})
    with pytest.raises(ContainerRuntimeError, match=name):
        runtime.create_network(name, ["algo-1"], {})


def test_container_on_a_network_that_is_not_there(runtime: ContainerRuntime) -> None:
    name = name_network()
    with pytest.raises(ContainerStartError, match=name):
        runtime.start(python("pass", network=name, hostname="algo-1"))
    assert runtime.find({}) == []


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
from container_runtime.spec import ContainerSpec
LocalProcesses._build_process = lambda *_: os._exit(9)
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


def test_a_container_has_folders_and_packages_of_its_own(
    runtime: ContainerRuntime, back_end: str, shared: Mount, tmp_path: Path
) -> None:
    """Its /tmp, home and what pip installs are in its scratch folder, and whoever started it can read them."""
    write_wheel(shared.source, "of_the_job_alone", "LIMIT = 1.5\n")
    write_wheel(shared.source, "jmespath", "__version__ = 'mine'\n")
    source = f"""
import os, pathlib, subprocess, sys, tempfile
wheels = [str(path) for path in pathlib.Path({in_container(runtime, shared, "")}).glob("*.whl")]
command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "boto3", *wheels]
done = subprocess.run(command, capture_output=True, text=True)
if done.returncode:
    print(done.stdout + done.stderr)
found = "import jmespath, of_the_job_alone as own; print(jmespath.__version__, own.LIMIT)"
subprocess.run([sys.executable, "-c", found])
for folder in (tempfile.gettempdir(), os.path.expanduser("~")):
    path = pathlib.Path(folder, "private")
    path.touch(mode=0o600)
    path.write_text("mine")
print(os.access("/usr", os.W_OK), os.statvfs("/").f_flag & os.ST_RDONLY, os.path.exists("/var/tmp/private"))
"""
    scratch = tmp_path / "scratch"
    ended, lines = run(runtime, python(source, mounts=(shared,), scratch=scratch, read_only_root=True))
    assert ended == Exit(0)
    assert lines[0] == "mine 1.5"
    if back_end in LIKE_DOCKER:
        assert lines[1:] == ["False 1 True"]
    if runtime.path_in_container(shared, "") == "/opt/ml" and back_end not in KEEPING_SCRATCH:
        assert {(scratch / name / "private").read_text() for name in ("tmp", "home")} == {"mine"}
        assert list(scratch.glob("own-packages/lib/*/site-packages/of_the_job_alone*"))


@pytest.fixture
def image_with_files(back_end: str, tmp_path: Path) -> Iterator[str]:
    """An image with files below /opt/ml, made of ours."""
    if back_end == "process":
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
