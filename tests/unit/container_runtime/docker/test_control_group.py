"""Tests of the Docker meter, on both versions of control groups."""

from pathlib import Path

import pytest

from container_runtime.docker.control_group import ControlGroupMeter
from container_runtime.meter import Load
from container_runtime.runtime import ContainerRuntimeError

NETWORK = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo:  999 1 0 0 0 0 0 0  999 1 0 0 0 0 0 0
  eth0:  100 1 0 0 0 0 0 0  200 1 0 0 0 0 0 0
eth1:1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
"""
LOAD = Load(1.5, 900, 10, 20, 7, 1100, 2200)


def write(root: Path, files: dict[str, str]) -> None:
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)


def test_the_second_version(tmp_path: Path) -> None:
    group = "groups/system.slice/docker-1a.scope"
    write(
        tmp_path,
        {
            "proc/7/cgroup": "0::/system.slice/docker-1a.scope\n",
            "proc/7/net/dev": NETWORK,
            f"{group}/cpu.stat": "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\n",
            f"{group}/memory.current": "1000\n",
            f"{group}/memory.stat": "anon 800\ninactive_file 100\n",
            f"{group}/io.stat": "8:0 rbytes=4 wbytes=20 rios=1 wios=3 dios=0\n254:0 rbytes=6 wbytes=0 rios=3 wios=0\n",
        },
    )
    meter = ControlGroupMeter(7, tmp_path / "groups", tmp_path / "proc")
    assert meter.read() == LOAD
    assert list(meter.list_processes()) == []
    (tmp_path / group / "cgroup.procs").write_text("7\n9\n")
    assert list(meter.list_processes()) == [7, 9]
    # The engine leaves out io.stat where no group above has that controller.
    (tmp_path / group / "io.stat").unlink()
    load = meter.read()
    assert load is not None
    assert (load.written_bytes, load.io_operations) == (0, 0)
    (tmp_path / group / "cpu.stat").unlink()
    assert meter.read() is None


def test_the_first_version(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/7/cgroup": "11:cpu,cpuacct:/docker/1a\n4:memory:/docker/1a\n3:blkio:/docker/1a\n0::/system.slice\n",
            "proc/7/net/dev": NETWORK,
            "groups/cpuacct/docker/1a/cpuacct.usage": "1500000000\n",
            "groups/cpuacct/docker/1a/cgroup.procs": "7\n8\n",
            "groups/memory/docker/1a/memory.usage_in_bytes": "1000\n",
            "groups/memory/docker/1a/memory.stat": "cache 5\ntotal_inactive_file 100\n",
            "groups/blkio/docker/1a/blkio.throttle.io_service_bytes": "8:0 Read 10\n8:0 Write 20\nTotal 30\n",
            "groups/blkio/docker/1a/blkio.throttle.io_serviced": "8:0 Read 4\n8:0 Write 3\n8:0 Total 7\nTotal 7\n",
        },
    )
    meter = ControlGroupMeter(7, tmp_path / "groups", tmp_path / "proc")
    assert meter.read() == LOAD
    assert list(meter.list_processes()) == [7, 8]


@pytest.mark.parametrize(("content", "limit"), [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None)])
def test_the_limit_of_cores_of_the_second_version(content: str, limit: float | None, tmp_path: Path) -> None:
    write(tmp_path, {"proc/7/cgroup": "0::/a\n", "proc/7/net/dev": NETWORK, "groups/a/cpu.max": content})
    write(
        tmp_path / "groups/a", {"cpu.stat": "usage_usec 1\n", "memory.current": "1", "memory.stat": "inactive_file 0"}
    )
    load = ControlGroupMeter(7, tmp_path / "groups", tmp_path / "proc").read()
    assert load is not None
    assert load.cpu_limit == limit


@pytest.mark.parametrize(("quota", "limit"), [("200000\n", 2.0), ("-1\n", None)])
def test_the_limit_of_cores_of_the_first_version(quota: str, limit: float | None, tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "proc/7/cgroup": "11:cpu:/a\n10:cpuacct:/a\n4:memory:/a\n3:blkio:/a\n",
            "proc/7/net/dev": NETWORK,
            "groups/cpu/a/cpu.cfs_quota_us": quota,
            "groups/cpu/a/cpu.cfs_period_us": "100000\n",
            "groups/cpuacct/a/cpuacct.usage": "0\n",
            "groups/cpuacct/a/cgroup.procs": "7\n",
            "groups/memory/a/memory.usage_in_bytes": "1\n",
            "groups/memory/a/memory.stat": "total_inactive_file 0\n",
            "groups/blkio/a/blkio.throttle.io_service_bytes": "",
            "groups/blkio/a/blkio.throttle.io_serviced": "",
        },
    )
    load = ControlGroupMeter(7, tmp_path / "groups", tmp_path / "proc").read()
    assert load is not None
    assert load.cpu_limit == limit


def test_a_container_of_another_machine(tmp_path: Path) -> None:
    with pytest.raises(ContainerRuntimeError, match="process 7 is not to be seen"):
        ControlGroupMeter(7, tmp_path / "groups", tmp_path / "proc")
    write(tmp_path, {"proc/7/cgroup": "0::/elsewhere\n"})
    with pytest.raises(ContainerRuntimeError, match="control group is not at"):
        ControlGroupMeter(7, tmp_path / "groups", tmp_path / "proc")
