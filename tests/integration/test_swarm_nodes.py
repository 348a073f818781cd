"""Tests of the engines for Swarm tests: they form one Swarm, and are removed."""

import contextlib
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.swarm_nodes import EngineNodes, SwarmNodes
from tests.waiting import wait_until

_LISTS = (
    ("ip", "-o", "link"),
    ("ip", "netns", "list"),
    ("find", "/sys/fs/cgroup", "-ignore_readdir_race", "-name", "smd-*"),
)


def _list_namespaces() -> list[str]:
    return [subprocess.run(command, check=True, capture_output=True, text=True).stdout for command in _LISTS]


@pytest.mark.slow
@pytest.mark.usefixtures("granted_namespaces")
def test_two_engines_are_one_swarm_and_nothing_is_left_of_them() -> None:
    """Also where another process takes them down, after one of them has lost its power."""
    with tempfile.TemporaryDirectory(prefix="smd-") as parent:
        nodes = SwarmNodes(Path(parent) / "swarm", in_memory=True)
        nodes.start()
        try:
            with closing(nodes.manager.connect()) as manager, closing(nodes.nodes[1].connect()) as worker:
                found = {each["Status"]["Addr"]: each["Spec"]["Role"] for each in manager.nodes()}
                assert found == {nodes.nodes[0].address: "manager", nodes.nodes[1].address: "worker"}
                engines = {api.info()["Swarm"]["NodeID"] for api in (manager, worker)}
                assert len(engines) == 2
                names = {each["Description"]["Hostname"] for each in manager.nodes()}
                assert names == {each.namespace for each in nodes.nodes}
                assert worker.info()["Swarm"]["RemoteManagers"][0]["Addr"] == f"{nodes.manager.address}:2377"
            nodes.kill(nodes.nodes[1])
            nodes.start_engine(nodes.nodes[1])
            nodes.await_engine(nodes.nodes[1])
            with closing(nodes.manager.connect()) as manager:
                wait_until(lambda: [each["Status"]["State"] for each in manager.nodes()] == ["ready", "ready"])
        finally:
            source = "import sys; from pathlib import Path; from tests.swarm_nodes import EngineNodes, SwarmNodes; "
            source += "SwarmNodes(Path(sys.argv[1])).stop()"
            root = Path(__file__).parents[2]
            subprocess.run([sys.executable, "-c", source, nodes.folder], check=True, cwd=root)
            nodes.stop()
        assert not nodes.folder.exists()
        left = "".join(_list_namespaces())
        assert nodes.manager.namespace not in left
        assert nodes.switch not in left
        # Another process may have some, or remove its last one now.
        wait_until(lambda: any(Path("/run/netns").iterdir()) or not Path("/run/netns").is_mount())


@pytest.mark.nightly  # the tests of a Swarm start the same engines by day
@pytest.mark.usefixtures("granted_namespaces")
def test_make_swarm_ends_and_leaves_no_pipe_open() -> None:
    """Whoever reads what it prints comes to an end while the engines run."""
    with tempfile.TemporaryDirectory(prefix="smd-") as parent:
        folder = Path(parent) / "swarm"
        source = "import sys; from pathlib import Path; from tests import swarm_nodes; "
        source += "swarm_nodes.FOLDER = Path(sys.argv.pop()); swarm_nodes.main()"
        root = Path(__file__).parents[2]

        def make(target: str) -> str:
            command = [sys.executable, "-c", source, target, str(folder)]
            return subprocess.run(command, check=True, capture_output=True, text=True, cwd=root, timeout=120).stdout

        try:
            assert f"export DOCKER_HOST=unix://{folder}/1.sock" in make("up")
            with closing(SwarmNodes(folder).manager.connect()) as manager:
                assert len({each["Description"]["Hostname"] for each in manager.nodes()}) == 2
        finally:
            assert make("down") == "The Swarm is taken down.\n"
        assert not folder.exists()


@pytest.mark.nightly
@pytest.mark.usefixtures("granted_namespaces")
def test_engines_end_with_the_process_that_started_them() -> None:
    """Also where it is killed and can stop nothing itself, as a run of tests may be."""
    with tempfile.TemporaryDirectory(prefix="smd-") as parent:
        folder = Path(parent) / "swarm"
        nodes = EngineNodes(folder, 1)
        source = "import sys; from pathlib import Path; from tests.swarm_nodes import EngineNodes; "
        source += "EngineNodes(Path(sys.argv[1]), 1, in_memory=True, linked=None).start(join=False); "
        source += "print('started', flush=True); sys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-c", source, folder],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"started\n"
            with closing(nodes.nodes[0].connect()) as api:
                assert api.ping()
            process.kill()
            process.communicate()  # its output ends with the last process that has it: the engine, or what stops it
            assert not folder.exists()
            left = "".join(_list_namespaces())
            assert nodes.nodes[0].namespace not in left
            assert nodes.switch not in left
        finally:
            process.kill()
            process.communicate()
            nodes.stop()


@pytest.mark.nightly
@pytest.mark.usefixtures("granted_namespaces")
def test_engines_get_a_network_that_this_machine_is_not_in() -> None:
    """Another's network of the same addresses would lead to the other's nodes."""
    with tempfile.TemporaryDirectory(prefix="smd-") as parent:
        folders = [Path(parent) / name for name in ("one", "two")]
        nodes = [EngineNodes(folder, 1, in_memory=True) for folder in folders]
        with ThreadPoolExecutor(2) as pool, contextlib.ExitStack() as stack:
            for each in nodes:
                stack.callback(each.stop)
            list(pool.map(EngineNodes.start, nodes))
            listed = subprocess.run(["ip", "-json", "address"], check=True, capture_output=True, text=True)
            addresses = [info["local"] for device in json.loads(listed.stdout) for info in device["addr_info"]]
            for each in nodes:
                network = each.address.rpartition(".")[0]
                assert [address for address in addresses if address.rpartition(".")[0] == network] == [each.address]
                assert [node.address.rpartition(".")[0] for node in each.nodes] == [network]
