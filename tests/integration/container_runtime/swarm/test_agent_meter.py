"""Tests of the meter of a container on another node."""

from pathlib import Path

from container_runtime.meter import Machine
from container_runtime.swarm.agent_key import keep_key
from container_runtime.swarm.agent_meter import AgentMeter
from tests.integration.container_runtime.swarm.test_proxies import NodeAgent
from tests.unit.container_runtime.docker.test_control_group import LOAD, NETWORK, write

# 12 cores, which have been busy for as many seconds as their number, and have waited for storage for two.
STAT = (
    "cpu  1 2 3 4 5 6 7 8 0 0\n"
    + "".join(f"cpu{core} {core}00 0 0 9 200 0 0 0 0 0\n" for core in range(12))
    + "intr 1\n"
)


def test_a_node_is_measured_and_not_the_machine_of_the_emulator(tmp_path: Path) -> None:
    group = "groups/docker/1a"
    write(
        tmp_path,
        {
            "proc/stat": STAT,
            "proc/1/net/dev": NETWORK.replace("100 1 0", "5000 1 0"),
            "proc/7/cgroup": "0::/docker/1a\n",
            "proc/7/net/dev": NETWORK,
            f"{group}/cpu.stat": "usage_usec 1500000\n",
            f"{group}/memory.current": "1000\n",
            f"{group}/memory.stat": "inactive_file 100\n",
            f"{group}/io.stat": "8:0 rbytes=10 wbytes=20 rios=4 wios=3 dios=0\n",
        },
    )
    key = keep_key(tmp_path / "key")
    (tmp_path / "volumes").mkdir()
    node = NodeAgent(key, tmp_path / "volumes", tmp_path / "proc", tmp_path / "groups")
    try:
        meter = AgentMeter(("127.0.0.1", node.port), key, 7)
        assert meter.read() == LOAD
        assert not meter.is_local
        assert meter.read_machine() == Machine(tuple(map(float, range(12))), (2.0,) * 12, 6000, 2200)
        (tmp_path / group / "cpu.stat").unlink()
        assert meter.read() is None
    finally:
        node.close()
