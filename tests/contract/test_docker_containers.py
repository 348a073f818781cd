"""Tests of Docker containers: privileges, limits, networks and address pools."""

import os
import resource
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any

import docker
import pytest

from container_runtime.contract.fixtures import shared  # noqa: F401 - a fixture
from container_runtime.contract.programs import IMAGE, python, run, start_and_await_line
from container_runtime.contract.test_networks import name_network
from container_runtime.images.catalogue import ImageCatalogue, local_name
from container_runtime.runtime import ContainerRuntime, Exit, NetworkExhaustedError
from container_runtime.spec import Mount
from tests.contract.docker_runtime import make_docker_runtime


def make_open_docker_runtime(_folder: Path, instance: str) -> ContainerRuntime:
    """Make the one whose containers are on a bridge, as with --allow-internet."""
    from container_runtime.docker.engine import DockerEngine

    return DockerEngine(instance)


@pytest.mark.docker
@pytest.mark.parametrize(
    "explanation",
    [
        "could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network",
        "all predefined address pools have been fully subnetted",
    ],
)
def test_docker_address_pools_that_run_out_are_reported(
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
def test_a_start_asks_once_for_containers_where_none_were_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    containers = docker.APIClient.containers

    def count(*args: Any, **given: Any) -> Any:
        asked.append(given)
        return containers(*args, **given)

    monkeypatch.setattr(docker.APIClient, "containers", count)
    runtime = make_docker_runtime(tmp_path, f"test-{uuid.uuid4().hex[:12]}")
    try:
        runtime.offer(1, lambda _listening: None)
        assert runtime.find({}) == []
        assert len(asked) == 1
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


@pytest.mark.docker
@pytest.mark.parametrize(("handler", "expected"), [("", Exit(143)), ("lambda *_: sys.exit(0)", Exit(0))])
def test_a_container_that_somebody_stops_ends_as_its_program_does(tmp_path: Path, handler: str, expected: Exit) -> None:
    """Only an engine that is shut down takes the container of a job away."""
    runtime = make_docker_runtime(tmp_path, f"test-{uuid.uuid4().hex[:12]}")
    handling = f"signal.signal(signal.SIGTERM, {handler or 'signal.SIG_DFL'})"
    try:
        source = f"import signal, sys, time\n{handling}\nprint('ready', flush=True)\ntime.sleep(600)"
        container = start_and_await_line(runtime, source)
        with closing(docker.from_env()) as client:
            client.api.stop(container)
        assert runtime.wait(container, 60.0) == expected
    finally:
        for each in runtime.find({}):
            runtime.remove(each.id)
        runtime.close()


@pytest.mark.docker
def test_a_newer_build_of_an_image_brings_its_own_files(tmp_path: Path) -> None:
    runtime = make_docker_runtime(tmp_path, f"test-{uuid.uuid4().hex[:12]}")
    found = ImageCatalogue().find(IMAGE)
    assert found is not None
    tag = f"built-again:{uuid.uuid4().hex[:12]}"
    source = "from pathlib import Path; print([path.read_text() for path in Path('/opt/ml').rglob('file')])"
    context = tmp_path / "context"
    (context / "ml").mkdir(parents=True)
    try:
        with closing(docker.from_env()) as client:
            for number in range(2):
                (context / "Dockerfile").write_text(f"FROM {local_name(found[0])}\nCOPY ml /opt/ml\n")
                (context / "ml" / "file").write_text(str(number))
                client.images.build(path=str(context), tag=tag, network_mode="none", rm=True, forcerm=True)
                folder = tmp_path / str(number)
                folder.mkdir()
                ended, lines = run(runtime, python(source, image=tag, mounts=(Mount(folder, "/opt/ml", own=()),)))
                assert (ended, lines) == (Exit(0), [str([str(number)])])
    finally:
        for container in runtime.find({}):
            runtime.remove(container.id)
        runtime.close()
        with closing(docker.from_env()) as client:
            client.images.remove(tag, force=True)


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
    api = connect()
    try:
        container = start_and_await_line(runtime, "import time; print('ready', flush=True); time.sleep(60)")
        runtime.close()
        assert api.networks(names=[f"smdebug-emulator-{instance}"])
        again = make_open_docker_runtime(tmp_path, instance)
        assert again.host_address == runtime.host_address
        again.remove(container)
        again.close()
        assert not api.networks(names=[f"smdebug-emulator-{instance}"])
    finally:
        api.close()
        with closing(make_open_docker_runtime(tmp_path, instance)) as left:
            for each in left.find({}):
                left.remove(each.id)
