"""Tests of spare containers on a Docker engine."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import docker
import pytest
import requests

from container_runtime.docker.border import connect
from container_runtime.docker.engine import DockerEngine
from container_runtime.docker.log import parse_timestamp
from container_runtime.docker.spares.spare import SPARE_LABEL, Spare
from container_runtime.docker.spares.spares import SpareOptions
from container_runtime.images.catalogue import ImageCatalogue
from container_runtime.runtime import STARTED_COLD, EngineUnavailableError, Exit
from container_runtime.spec import ContainerSpec, Mount
from tests.quick_images import IMPORTED, QuickToImport
from tests.waiting import wait_until

pytestmark = pytest.mark.docker

IMAGE = "sagemaker-debugger-rules"
MOST_BYTES = 2 * 1024**3
IS_WARM = f"import sys; print({IMPORTED!r} in sys.modules)"


@pytest.fixture
def make_engine(tmp_path: Path) -> Iterator[Callable[..., DockerEngine]]:
    """Makes engines of one instance, as an emulator before and after its restart has."""
    instance = f"test-{uuid.uuid4().hex[:12]}"
    made: list[DockerEngine] = []

    def make(memory_bytes: int = MOST_BYTES, **options: Any) -> DockerEngine:
        made.append(build_engine(tmp_path, instance, memory_bytes, **options))
        return made[-1]

    make.instance = instance  # type: ignore[attr-defined]
    make.made = made  # type: ignore[attr-defined]
    yield make
    for engine in made:
        remove_all(engine)
    assert list_containers(instance) == []


def build_engine(
    folder: Path,
    instance: str,
    memory_bytes: int = MOST_BYTES,
    catalogue: ImageCatalogue | None = None,
    **options: Any,
) -> DockerEngine:
    spares = SpareOptions(folder / "spares", memory_bytes, **options)
    return DockerEngine(instance, catalogue or QuickToImport(), sidecars=folder / "sidecars", spares=spares)


def list_containers(instance: str, **labels: str) -> list[dict[str, Any]]:
    with closing(connect()) as api:
        wanted = [f"smdebug-emulator.instance={instance}", *labels.values()]
        found: list[dict[str, Any]] = api.containers(all=True, filters={"label": wanted})
        return found


def build_spec(folder: Path, source: str, **changes: Any) -> ContainerSpec:
    name = f"test-{uuid.uuid4().hex[:12]}"
    (folder / name).mkdir()
    (folder / name / "given").write_text("given")
    members = {
        "mounts": (Mount(folder / name, "/opt/ml"),),
        "environment": {"AWS_SECRET_ACCESS_KEY": "of the job"},
        "labels": {"job": name},
        "memory_bytes": 512 * 1024**2,
        "read_only_root": True,
        "scratch": folder / f"scratch-{name}",
        "entrypoint": ("python", "-c"),
        **changes,
    }
    return ContainerSpec(name=name, image=IMAGE, command=(source,), **members)


def start_ready(engine: DockerEngine, spec: ContainerSpec) -> str:
    assert engine.keep_ready(spec, 600.0)
    wait_until(lambda: engine.is_ready(spec))
    return engine.start(spec)


def read_log(engine: DockerEngine, container: str) -> list[str]:
    return [line.text for line in engine.logs(container)]


def test_a_spare_container_becomes_a_container_and_another_follows(
    make_engine: Callable[..., DockerEngine], tmp_path: Path
) -> None:
    source = """
import json, os, pathlib, sys
pathlib.Path("/opt/ml/made").write_text(pathlib.Path("/opt/ml/given").read_text())
pathlib.Path("/tmp/made").touch()
print(json.dumps([
    "smdebug.rules.rule_invoker" in sys.modules, os.environ["AWS_SECRET_ACCESS_KEY"], sys.argv, sys.path[0],
    sorted(os.listdir("/proc/self/fd")),
    "AWS_SECRET_ACCESS_KEY=of the job" in open("/proc/self/environ").read(),
]))
sys.exit(3)
"""
    engine = make_engine(catalogue=ImageCatalogue())
    spec = build_spec(tmp_path, source, cpus=1)
    container = start_ready(engine, spec)
    assert engine.wait(container, 60.0) == Exit(3)
    (line,) = read_log(engine, container)
    assert json.loads(line) == [True, "of the job", ["-c"], "", ["0", "1", "2", "3"], True]
    assert (spec.mounts[0].source / "made").read_text() == "given"
    assert spec.scratch is not None
    assert (spec.scratch / "tmp" / "made").exists()
    assert [(each.name, each.labels) for each in engine.find(spec.labels) if "job" in each.labels] == [
        (spec.name, spec.labels)
    ]
    api = connect()
    try:
        inspected = api.inspect_container(container)
    finally:
        api.close()
    assert "of the job" not in json.dumps(inspected)
    assert inspected["HostConfig"]["Memory"] == inspected["HostConfig"]["MemorySwap"] == spec.memory_bytes
    assert inspected["HostConfig"]["NanoCpus"] == (0 if os.cpu_count() == 1 else 10**9)
    another = build_spec(tmp_path, "import sys; print('smdebug.rules.rule_invoker' in sys.modules)")
    wait_until(lambda: engine.is_ready(another))
    assert read_log(engine, engine.start(another)) == ["True"]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"isolated": True}, "it has no network"),
        # unit/container_runtime/docker/spares/test_spare_shape.py has these by day.
        pytest.param({"environment": {"OMP_NUM_THREADS": "1"}}, "OMP_NUM_THREADS", marks=pytest.mark.nightly),
        pytest.param({"environment": {"PATH": "/usr/bin:/opt/venv/bin"}}, "PATH", marks=pytest.mark.nightly),
        pytest.param({"entrypoint": ("/opt/venv/bin/python3", "-c")}, "its program is", marks=pytest.mark.nightly),
    ],
)
def test_what_no_spare_container_can_become_starts_cold_and_says_why(
    make_engine: Callable[..., DockerEngine], tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    engine = make_engine()
    spec = build_spec(tmp_path, IS_WARM, **changes)
    assert not engine.keep_ready(spec, 600.0)
    first, second = read_log(engine, engine.start(spec))
    assert first.startswith(STARTED_COLD)
    assert why in first
    assert second == "False"


@pytest.mark.parametrize("end", ["killed", pytest.param("memory", marks=pytest.mark.nightly)])
def test_a_spare_container_that_has_ended_costs_no_more_than_a_cold_start(
    make_engine: Callable[..., DockerEngine], tmp_path: Path, end: str
) -> None:
    engine = make_engine()
    spec = build_spec(tmp_path, IS_WARM)
    engine.keep_ready(spec, 600.0)
    wait_until(lambda: engine.is_ready(spec))
    (spare,) = list_containers(make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
    api = connect()
    try:
        if end == "killed":
            api.kill(spare["Id"])
        else:
            let_kernel_kill(api, spare["Id"])
    finally:
        api.close()
    container = engine.start(spec)
    assert (engine.wait(container, 60.0), container == spare["Id"]) == (Exit(0), False)


def let_kernel_kill(api: docker.APIClient, container: str) -> None:
    """Let the container's memory be used up, of which its program is the first to be killed."""
    bound = 256 * 1024**2
    api.update_container(container, mem_limit=bound, memswap_limit=bound)
    program = (
        "import glob, os, pathlib\n"
        "own = f'/proc/{os.getpid()}/cmdline'\n"
        "for each in glob.glob('/proc/[0-9]*/cmdline'):\n"
        "    if each != own and b'spare_program' in pathlib.Path(each).read_bytes():\n"
        "        pathlib.Path(each).with_name('oom_score_adj').write_text('1000')\n"
        "used = []\n"
        "while True:\n"
        "    used.append(b'x' * 2**22)\n"
    )
    api.exec_start(api.exec_create(container, ["python", "-c", program])["Id"])
    wait_until(lambda: not api.inspect_container(container)["State"]["Running"])
    assert api.inspect_container(container)["State"]["OOMKilled"]


def test_a_container_that_was_given_away_is_found_after_a_restart(
    make_engine: Callable[..., DockerEngine], tmp_path: Path
) -> None:
    spec = build_spec(tmp_path, "import time; print('runs', flush=True); time.sleep(600)")
    engine = make_engine()
    container = start_ready(engine, spec)
    engine.close()
    later = make_engine(memory_bytes=0)
    (found,) = later.find(spec.labels)
    assert (found.id, found.name, found.running) == (container, spec.name, True)
    assert found.labels["job"] == spec.name
    assert next(later.logs(container)).text == "runs"
    later.remove(container)
    assert later.find({}) == []
    assert list((tmp_path / "spares" / "given-away").iterdir()) == []


def test_a_container_that_was_not_handed_over_whole_is_no_jobs(
    make_engine: Callable[..., DockerEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine goes away in between, so that the spare container cannot be removed, either."""
    spec = build_spec(tmp_path, IS_WARM)
    engine = make_engine()
    engine.keep_ready(spec, 600.0)
    wait_until(lambda: engine.is_ready(spec))

    def refuse(*_: object, **__: object) -> None:
        raise requests.exceptions.ConnectionError("gone")

    with monkeypatch.context() as away:
        away.setattr(Spare, "fill", refuse)
        away.setattr(docker.APIClient, "remove_container", refuse)
        with pytest.raises(EngineUnavailableError):
            engine.start(spec)
        assert engine.find(spec.labels) == []
    container = engine.start(spec)
    assert engine.wait(container, 60.0) == Exit(0)
    assert [each.id for each in engine.find(spec.labels)] == [container]


def test_spare_containers_of_a_killed_emulator_end_and_are_not_taken_for_jobs(
    make_engine: Callable[..., DockerEngine], tmp_path: Path
) -> None:
    instance: str = make_engine.instance  # type: ignore[attr-defined]
    spec = build_spec(tmp_path, IS_WARM)
    program = f"""
import time
from pathlib import Path
from tests.integration.container_runtime.docker.spares.test_spares import *
engine = build_engine(Path({str(tmp_path)!r}), {instance!r})
spec = build_spec(Path({str(tmp_path)!r}), IS_WARM)
engine.keep_ready(spec)
wait_until(lambda: engine.is_ready(spec))
print("ready", flush=True)
time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGKILL)
    (spare,) = list_containers(instance, spare=SPARE_LABEL)
    wait_until(lambda: list_containers(instance, spare=SPARE_LABEL)[0]["State"] == "exited")
    engine = make_engine(memory_bytes=0)
    assert engine.find({}) == []
    assert spare["Id"] not in {each["Id"] for each in list_containers(instance)}
    assert engine.wait(engine.start(spec), 60.0) == Exit(0)


def test_spare_containers_stay_below_their_bound(make_engine: Callable[..., DockerEngine], tmp_path: Path) -> None:
    first = build_spec(tmp_path, IS_WARM)
    other = replace(first, shm_bytes=64 << 20)
    engine = make_engine()
    engine.keep_ready(first)
    wait_until(lambda: engine.is_ready(first))
    (spare,) = list_containers(make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
    usage = engine.read_usage(spare["Id"])
    assert usage is not None
    engine.close()

    engine = make_engine(memory_bytes=usage.memory_bytes * 3 // 2, guessed_bytes=usage.memory_bytes)
    engine.keep_ready(first, 600.0)
    wait_until(lambda: engine.is_ready(first))
    engine.keep_ready(other)
    wait_until(lambda: engine.is_ready(other))
    assert not engine.is_ready(first)


def test_nothing_is_kept_without_memory_for_it(make_engine: Callable[..., DockerEngine], tmp_path: Path) -> None:
    engine = make_engine(memory_bytes=0)
    spec = build_spec(tmp_path, IS_WARM)
    assert not engine.keep_ready(spec)
    assert read_log(engine, engine.start(spec)) == ["False"]


def test_spare_containers_are_removed_after_ten_idle_minutes_unless_they_are_asked_for(
    make_engine: Callable[..., DockerEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0.0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr("container_runtime.docker.spares.spares.time", clock)
    engine = make_engine()
    began = clock.monotonic()
    used = build_spec(tmp_path, IS_WARM)
    asked = replace(used, shm_bytes=64 << 20)
    engine.keep_ready(asked)
    assert engine.wait(engine.start(used), 60.0) == Exit(0)
    wait_until(lambda: engine.is_ready(used) and engine.is_ready(asked))
    kept = engine._spares
    assert kept is not None
    with kept._changed:
        assert kept._drop_expired(began + 599) == []
        passed = 601.0
        kept._changed.notify_all()
    spares = partial(list_containers, make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
    wait_until(lambda: len(spares()) == 1)
    assert not engine.is_ready(used)
    assert engine.is_ready(asked)


@pytest.mark.parametrize(("seconds", "shares"), [(None, 1024), pytest.param(60.0, 2, marks=pytest.mark.nightly)])
def test_only_what_is_asked_for_ahead_has_a_full_share_of_the_processors(
    make_engine: Callable[..., DockerEngine], tmp_path: Path, seconds: float | None, shares: int
) -> None:
    engine = make_engine()
    spec = build_spec(tmp_path, IS_WARM)
    engine.keep_ready(spec, seconds)
    wait_until(lambda: engine.is_ready(spec))
    (spare,) = list_containers(make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
    assert read_shares(spare["Id"]) == shares
    # The one that follows is made while the first one works.
    assert engine.wait(engine.start(spec), 60.0) == Exit(0)
    wait_until(lambda: engine.is_ready(spec))
    followers = list_containers(make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
    assert [read_shares(each["Id"]) for each in followers if each["Id"] != spare["Id"]] == [2]


def test_each_request_without_an_end_keeps_one_more(make_engine: Callable[..., DockerEngine], tmp_path: Path) -> None:
    engine = make_engine()
    spec = build_spec(tmp_path, IS_WARM)
    engine.keep_ready(spec)
    engine.keep_ready(spec)
    specs = [spec, build_spec(tmp_path, IS_WARM)]
    spares = partial(list_containers, make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
    wait_until(lambda: len(spares()) == 2)
    for each in specs:
        wait_until(partial(engine.is_ready, each))
        # One of the two, or the one that follows the first.
        assert engine.start(each) in {container["Id"] for container in spares()}


@pytest.mark.nightly
def test_imports_that_a_container_waits_for_come_before_those_of_other_spare_containers(
    make_engine: Callable[..., DockerEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("container_runtime.docker.spares.spares._PAUSE_SECONDS", 0.0)
    engine = make_engine()
    awaited = build_spec(tmp_path, IS_WARM)
    other = replace(build_spec(tmp_path, IS_WARM), shm_bytes=64 << 20)
    engine.keep_ready(awaited)
    spares = partial(list_containers, make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
    wait_until(spares)
    with ThreadPoolExecutor(1) as pool:
        started = pool.submit(engine.start, awaited)
        kept = engine._spares
        assert kept is not None
        wait_until(lambda: started.done() or any(each.waiting for each in kept._kept.values()))
        engine.keep_ready(other)
        container = started.result()
    record = tmp_path / "spares" / "given-away" / container
    given_at = record.stat().st_mtime
    wait_until(lambda: engine.is_ready(other))
    assert all(read_creation(each["Id"]) >= given_at for each in spares() if each["Id"] != container)


def read_creation(container: str) -> float:
    """Return the time in seconds since the epoch at which a container was created."""
    api = connect()
    try:
        created: str = api.inspect_container(container)["Created"]
    finally:
        api.close()
    return float(parse_timestamp(f"{created} ".encode()))


def read_shares(container: str) -> int:
    api = connect()
    try:
        shares: int = api.inspect_container(container)["HostConfig"]["CpuShares"]
        return shares
    finally:
        api.close()


@pytest.mark.nightly  # by day, one is killed when it is ready
def test_a_spare_container_killed_during_its_imports_is_replaced(
    make_engine: Callable[..., DockerEngine], tmp_path: Path
) -> None:
    engine = make_engine(catalogue=ImageCatalogue())  # its imports take long enough to be killed
    spec = build_spec(tmp_path, IS_WARM)
    engine.keep_ready(spec, 600.0)
    spares = partial(list_containers, make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
    # One that is created, but not started yet, cannot be killed.
    (spare,) = wait_until(lambda: [each for each in spares() if each["State"] == "running"])
    api = connect()
    try:
        # As the kernel does where memory is short.
        api.kill(spare["Id"])
    finally:
        api.close()
    wait_until(lambda: engine.is_ready(spec))


def test_spare_containers_of_an_image_that_was_built_again_are_replaced(
    make_engine: Callable[..., DockerEngine], tmp_path: Path
) -> None:
    name = f"test-{uuid.uuid4().hex[:12]}"
    definition = tmp_path / "images" / name / "image.toml"
    definition.parent.mkdir(parents=True)
    definition.write_text(f'name = "{name}"\nwarm_modules = ["decimal"]\n')
    with closing(connect()) as api:
        api.tag(f"smdebug-emulator/{IMAGE}:latest", f"smdebug-emulator/{name}", "latest")
        try:
            engine = make_engine(catalogue=ImageCatalogue(definition.parent.parent))
            spec = replace(build_spec(tmp_path, "pass"), image=name)
            engine.keep_ready(spec)
            wait_until(lambda: engine.is_ready(spec))
            (before,) = list_containers(make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
            source = io.BytesIO(f"FROM smdebug-emulator/{IMAGE}:latest\nENV BUILT=again\n".encode())
            list(api.build(fileobj=source, tag=f"smdebug-emulator/{name}:latest", rm=True))
            container = engine.start(replace(spec, command=("import os; print(os.environ['BUILT'])",)))
            assert read_log(engine, container) == ["again"]
            spares = partial(list_containers, make_engine.instance, spare=SPARE_LABEL)  # type: ignore[attr-defined]
            wait_until(lambda: before["Id"] not in [each["Id"] for each in spares()])
            wait_until(lambda: engine.is_ready(spec))
        finally:
            for each in make_engine.made:  # type: ignore[attr-defined]
                remove_all(each)
            api.remove_image(f"smdebug-emulator/{name}:latest", force=True)


def remove_all(engine: DockerEngine) -> None:
    """Remove an engine's containers, and close it."""
    for container in engine.find({}):
        engine.remove(container.id)
    engine.close()
