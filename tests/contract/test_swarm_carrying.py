"""Tests of killed file transfers with Swarm nodes, in both directions.

A kill loses nothing and doubles nothing.

A file is under way for as long as the test wants: it is larger than what comes within minutes, and sparse.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from container_runtime.contract.programs import python
from container_runtime.runtime import ContainerRuntime, Exit
from container_runtime.spec import ContainerSpec, Mount
from container_runtime.swarm.engine import SwarmEngine
from container_runtime.swarm.file_transfer import carrier
from tests.swarm_nodes import SwarmNodes
from tests.waiting import wait_until

pytestmark = pytest.mark.docker
ENDLESS = 1 << 34
LARGE, ROOM = 5 << 20, 1 << 20
OWNER = """
import os, sys
from pathlib import Path
from container_runtime.spec import Mount
from container_runtime.swarm.file_transfer import carrier
from container_runtime.contract.programs import python
from container_runtime.swarm.engine import SwarmEngine
carrier._FIRST_WINDOW = carrier._MOST_WINDOW = {room}  # little of a file comes, and takes room of a disk
runtime = SwarmEngine({instance!r}, Path(os.environ['KEY_OF_THE_AGENTS']), carry=True)
print(runtime.start(python({source!r}, name={name!r}, mounts=(Mount(Path({shared!r}), "/opt/ml"),))), flush=True)
sys.stdin.read()
"""
# Writes without a pause until it is told to end, then makes its large file one that can come.
WRITE = f"""
import hashlib, json, os, pathlib, time
ml = pathlib.Path("/opt/ml")
print(hashlib.sha256((ml / "input").read_bytes()).hexdigest(), flush=True)
(ml / "large").touch()
os.truncate(ml / "large", {ENDLESS})
written = {{}}
while not (ml / "go").exists():
    name = f"tensors/{{len(written)}}"
    (ml / "tensors").mkdir(exist_ok=True)
    (ml / f"{{name}}.tmp").write_text(name * 100)
    (ml / f"{{name}}.tmp").rename(ml / name)
    written[name] = hashlib.sha256((ml / name).read_bytes()).hexdigest()
    time.sleep(0.002)
(ml / "large").write_bytes(os.urandom({LARGE}))
written["large"] = hashlib.sha256((ml / "large").read_bytes()).hexdigest()
print(json.dumps(written))
"""


@contextmanager
def owning(instance: str, spec: ContainerSpec) -> Iterator[subprocess.Popen[str]]:
    """Start a container by another process, which is killed in the end."""
    source = OWNER.format(
        room=ROOM,
        instance=instance,
        source=spec.command[0],
        name=spec.name,
        shared=str(spec.mounts[0].source),
    )
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        try:
            yield owner
        finally:
            owner.send_signal(signal.SIGKILL)


@contextmanager
def taking_up(instance: str) -> Iterator[ContainerRuntime]:
    """Be the process that comes after, and leave nothing behind."""
    runtime = SwarmEngine(instance, Path(os.environ["KEY_OF_THE_AGENTS"]), carry=True)
    try:
        yield runtime
    finally:
        for each in runtime.find({}):
            runtime.remove(each.id)
        runtime.close()


def test_a_kill_while_files_are_carried_both_ways_loses_and_doubles_nothing(
    kept_agents: SwarmNodes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{kept_agents.manager.socket}")
    monkeypatch.setenv("KEY_OF_THE_AGENTS", str(kept_agents.folder / "key"))
    for name in ("_FIRST_WINDOW", "_MOST_WINDOW"):
        monkeypatch.setattr(carrier, name, ROOM)
    instance, ml = f"test-{uuid.uuid4().hex[:12]}", tmp_path / "ml"
    ml.mkdir()
    spec = python(WRITE, mounts=(Mount(ml, "/opt/ml"),))

    # Killed while the input is on its way to the node: the program never began, and is not seen.
    (ml / "input").touch()
    os.truncate(ml / "input", ENDLESS)
    volumes = [node.folder / "data" / "volumes" for node in kept_agents.nodes]
    with owning(instance, spec):
        wait_until(lambda: [each for volume in volumes for each in volume.glob("smd-*/_data/.arriving.tmp")])
    with taking_up(instance) as runtime:
        assert runtime.find({}) == []
    (ml / "input").write_bytes(os.urandom(LARGE))

    # Killed while files come from the node, a large one among them.
    with owning(instance, spec) as owner:
        assert owner.stdout is not None
        container = owner.stdout.readline().strip()
        wait_until(lambda: list(ml.glob(".arriving-*")) and list(ml.glob("tensors/*")))
    (half,) = ml.glob(".arriving-*")
    assert not (ml / "large").exists(), f"{half.stat().st_size} bytes of it have come"
    come = {each: each.stat().st_ino for each in ml.glob("tensors/*")}

    # While nobody carries them, the program goes on; who comes after is told what was there, and what was not.
    with taking_up(instance) as runtime:
        assert [(each.id, each.running) for each in runtime.find({})] == [(container, True)]
        assert not (ml / "large").exists()
        (ml / "go").touch()
        assert runtime.wait(container) == Exit(0)
        began, ended = (line.text for line in runtime.logs(container))
        written = json.loads(ended)
        assert began == hashlib.sha256((ml / "input").read_bytes()).hexdigest()
        found = {str(each.relative_to(ml)): each for each in ml.rglob("*") if each.is_file()}
        assert found.keys() == {"input", "go", *written}
        assert {name: hashlib.sha256(found[name].read_bytes()).hexdigest() for name in written} == written
        assert {each: each.stat().st_ino for each in come} == come, "they came once"
