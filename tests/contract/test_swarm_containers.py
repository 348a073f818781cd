"""Tests of a Swarm's containers by day, of as few as show what is not Docker's.

The contract has each of these facts in a test of its own, by night.
"""

import os
import uuid
from contextlib import closing
from pathlib import Path

import pytest

from container_runtime.contract.programs import DEADLINE_SECONDS, MEBIBYTE, python
from container_runtime.runtime import ContainerStartError, Exit
from container_runtime.spec import Mount
from container_runtime.swarm.engine import SwarmEngine
from tests.swarm_nodes import SwarmNodes

pytestmark = pytest.mark.docker


def test_a_task_is_what_its_container_is_asked_to_be(
    swarm_engine: SwarmEngine, kept_agents: SwarmNodes, tmp_path: Path
) -> None:
    """Its log is followed, its name taken, its mount both sides', its root read only; it has limits and an end."""
    outside = f"/var/tmp/out-of-a-test-{uuid.uuid4().hex}"
    (tmp_path / "in").write_text("from the test")
    (tmp_path / "sub").mkdir()
    source = f"""
import pathlib, time
ml = pathlib.Path("/opt/ml")
print("running", flush=True)
while not (ml / "go").exists():
    time.sleep(0.05)
(ml / "sub/out").write_text((ml / "in").read_text().upper())
try:
    pathlib.Path({outside!r}).touch()
except OSError as error:
    print(error.strerror)
raise SystemExit(3)
"""
    mount = Mount(tmp_path, "/opt/ml")
    spec = python(source, mounts=(mount,), read_only_root=True, cpus=1, memory_bytes=256 * MEBIBYTE)
    container = swarm_engine.start(spec)
    lines = swarm_engine.logs(container)
    assert next(lines).text == "running"
    assert swarm_engine.wait(container, 0) is None
    with pytest.raises(ContainerStartError, match=f"A container named {spec.name} exists already"):
        swarm_engine.start(spec)
    with closing(kept_agents.manager.connect()) as api:
        limits = api.inspect_service(container)["Spec"]["TaskTemplate"]["Resources"]["Limits"]
    assert limits["MemoryBytes"] == 256 * MEBIBYTE
    assert limits.get("NanoCPUs", 0) == (0 if os.cpu_count() == 1 else 10**9)
    (tmp_path / "go").touch()
    assert [line.text for line in lines] == ["Read-only file system"]
    assert swarm_engine.wait(container, DEADLINE_SECONDS) == Exit(3)
    out = tmp_path / "sub" / "out"
    assert out.read_text() == "FROM THE TEST"
    # No container is root's: where that is who starts it, it gets a user of its own, and its folders.
    own = (1000, 1000) if os.getuid() == 0 else (os.getuid(), os.getgid())
    assert (out.stat().st_uid, out.stat().st_gid) == own
