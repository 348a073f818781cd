"""Docker engines on one machine, alone or joined as a Swarm.

Each has a network, files and a socket of its own.

``python -m tests.swarm_nodes up`` and ``… down`` are ``make swarm`` and ``make swarm-down``. It takes root, and network
namespaces. The engine of the machine is asked for images only; it is neither touched nor joined.

A switch, in a namespace of its own, joins the engines with each other and with this machine, whose firewall so sees
nothing of what they say to each other. An engine sees a /run of its own, so that its socket is where containers expect
it, and a /sys of its network, without which overlay networks fail.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click
import docker

from tests.engine_images import link_image, load_images
from tests.engine_processes import list_processes, release_namespaces, remove_group
from tests.waiting import wait_until

RULES_IMAGE = "smdebug-emulator/sagemaker-debugger-rules:latest"
FOLDER = Path(__file__).parents[1] / ".cache" / "swarm"
_MOST_STARTS = 10
# What an engine sees; it outlasts the engine's own restarts, as the mounts of a machine do.
_MOUNT = """
set -e
mkdir -p "$1/cgroup"
mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$1/cgroup" /sys/fs/cgroup
mount -t tmpfs tmpfs /run
hostname "$3"
# An engine mounts these folders on themselves, which would hide the layers, unless they are mounts already.
if [ $# -gt 3 ]; then
    mount --bind "$1/data" "$1/data"
    mount --make-shared "$1/data"
    mount --bind "$1/data/overlay2" "$1/data/overlay2"
fi
shift 3
while [ $# -gt 0 ]; do
    mount --bind "$1" "$2"
    mount -o remount,bind,ro "$2"
    shift 2
done
echo
exec sleep infinity </dev/null >/dev/null 2>&1
"""
# An engine starts itself anew for each step of a network, ten times for a container: with these, each takes less.
_START = """
export GOGC=400 GOMAXPROCS=1
exec dockerd --data-root "$1/data" --exec-root /run/docker --pidfile /run/docker.pid --cgroup-parent "/$3" \\
    --insecure-registry 198.18.0.0/15 -H unix:///run/docker.sock -H "unix://$2" </dev/null >>"$1/engine.log" 2>&1
"""


def find_refusal() -> str | None:
    """Say why there can be no such engines here; None where there can."""
    if os.geteuid() != 0:
        return "engines in network namespaces take root"
    if missing := [name for name in ("dockerd", "ip", "nsenter", "unshare") if shutil.which(name) is None]:
        return f"there is no {', '.join(missing)} on this machine"
    done = subprocess.run(["unshare", "--net", "--mount", "true"], check=False, capture_output=True, text=True)
    return f"the kernel grants no namespaces: {done.stderr.strip()}" if done.returncode else None


@dataclass(frozen=True, slots=True)
class Node:
    """One engine.

    Attributes:
        number: from 1, which is the manager.
        address: at which the others, and this machine, reach it.
        namespace: its network's name, for ``ip netns``.
        folder: of its files.
        socket: of its API.
    """

    number: int
    address: str
    namespace: str
    folder: Path
    socket: Path

    def connect(self) -> docker.APIClient:
        """Return a client of the engine.

        Raises:
            OSError: it does not answer. The client itself would leave its socket open then.
        """
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(self.socket))
        return docker.APIClient(f"unix://{self.socket}", timeout=400)


class EngineNodes:
    """The engines of one folder, each alone: what is left of an earlier process is taken over."""

    def __init__(
        self, folder: Path, count: int = 2, *, in_memory: bool = False, linked: str | None = RULES_IMAGE
    ) -> None:
        """Name them; nothing runs before ``start``.

        Args:
            folder: of the engines' files. Its path is short: sockets are in it.
            count: how many, the manager included.
            in_memory: whether the files are in memory: images of some gigabytes are not, but quick to come and go.
            linked: the image that engines in memory have from the start, if ``link_image`` can share it.
        """
        self.folder = folder
        self._in_memory = in_memory
        self._linked = linked if in_memory else None
        self._id = hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:6]
        self.address = ""
        """This machine's, at which the nodes reach it. It and the nodes' addresses are chosen by ``start``."""
        self.nodes = [
            Node(number, "", f"smd-{self._id}-{number}", folder / str(number), folder / f"{number}.sock")
            for number in range(1, count + 1)
        ]
        self.switch = f"smd-{self._id}-switch"
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._mounts: dict[int, subprocess.Popen[bytes]] = {}
        self._watcher: subprocess.Popen[bytes] | None = None

    def start(self, *, join: bool = True, outlast: bool = False) -> None:
        """Start the engines; where anything fails, nothing is left.

        Args:
            join: whether they become one Swarm.
            outlast: whether they go on when this process ends. Otherwise they are stopped then, even if it is killed.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if not outlast:
                self._watch()
            if self._in_memory:
                subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "tmpfs", str(self.folder)], check=True)
            self._connect_networks()
            for node in self.nodes:
                self.start_engine(node)
            for node in self.nodes:
                self.await_engine(node)
            if join:
                self._join()
        except BaseException:
            self.stop()
            raise

    def _watch(self) -> None:
        """Start a process that stops the engines once this one has ended: the kernel closes the pipe between them."""
        source = "import sys; sys.stdin.read(); from pathlib import Path; from tests.swarm_nodes import EngineNodes; "
        source += "EngineNodes(Path(sys.argv[1]), int(sys.argv[2])).stop()"
        command = [sys.executable, "-c", source, str(self.folder.resolve()), str(len(self.nodes))]
        root = Path(__file__).parents[1]
        # In a session of its own: Ctrl-C ends the tests, not this.
        self._watcher = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, start_new_session=True)

    def _join(self) -> None:
        """Make one of the engines that answer now."""

    def start_engine(self, node: Node) -> None:
        """Start the engine of a node, which may have run before."""
        if node.number not in self._mounts:
            self._mount(node)
        command = ["nsenter", "--target", str(self._mounts[node.number].pid), "--net", "--mount", "--uts"]
        command += ["sh", "-c", _START, *self._name_places(node)]
        process = subprocess.Popen(command, start_new_session=True)
        self._processes[node.number] = process
        (self.folder / f"{node.number}.pid").write_text(str(process.pid))

    def _mount(self, node: Node) -> None:
        node.folder.mkdir(exist_ok=True)
        command = ["nsenter", f"--net=/run/netns/{node.namespace}", "unshare", "--mount", "--uts"]
        command += ["--propagation", "private"]
        command += ["sh", "-c", _MOUNT, *self._name_places(node)]
        if self._linked is not None:
            mounts = link_image(self._linked, node.folder.resolve() / "data")
            command += [str(place) for mount in mounts for place in mount]
        process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
        self._mounts[node.number] = process
        assert process.stdout is not None
        with process.stdout:
            if not process.stdout.readline():
                raise RuntimeError(f"The engine {node.number} has no mounts of its own: see above.")

    @staticmethod
    def _name_places(node: Node) -> list[str]:
        return ["engine", str(node.folder.resolve()), str(node.socket.resolve()), node.namespace]

    def end_engine(self, node: Node, number: signal.Signals) -> None:
        """End an engine by a signal, and leave to itself what becomes of its containers; ``start_engine`` follows.

        By SIGTERM it loses the image that it has linked.
        """
        process = self._processes.pop(node.number)
        process.send_signal(number)
        process.wait()

    def await_engine(self, node: Node) -> None:
        """Wait until an engine answers that was started; as a service manager does, start it again where it gives up.

        It does, on a busy machine, when its containerd is not there after some seconds.
        """
        left = _MOST_STARTS - 1

        def answers() -> bool:
            nonlocal left
            if self._processes[node.number].poll() is not None:
                if left > 0:
                    left -= 1
                    self.start_engine(node)
                    return False
                log = (node.folder / "engine.log").read_text(errors="replace").splitlines()
                raise RuntimeError(f"The engine {node.number} ended: " + "\n".join(log[-5:]))
            with contextlib.suppress(docker.errors.DockerException, OSError), closing(node.connect()) as api:
                return bool(api.ping())
            return False

        wait_until(answers)

    @contextlib.contextmanager
    def reached(self) -> Iterator[None]:
        """Have every client of this process and its children reach the first of them, and no other engine."""
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = f"unix://{self.nodes[0].socket}"
        try:
            yield
        finally:
            del os.environ["DOCKER_HOST"]
            if before is not None:
                os.environ["DOCKER_HOST"] = before

    def load(self, *images: str, onto: Sequence[Node] | None = None) -> None:
        """Copy images of the machine's own engine to every node, or onto some, unless they are there."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(lambda node: load_images(images, node.socket), onto or self.nodes))

    def hide(self, folder: Path) -> None:
        """Let no engine see a folder of this machine: at its place each has an empty one."""
        for process in self._mounts.values():
            command = ["nsenter", "--target", str(process.pid), "--mount", "mount", "-t", "tmpfs", "tmpfs", str(folder)]
            subprocess.run(command, check=True)

    def cut(self, node: Node) -> None:
        """Take a node's link away; ``mend`` gives it back."""
        _ip("-n", self.switch, "link", "set", f"port{node.number}", "down")

    def mend(self, node: Node) -> None:
        """Give a node its link back."""
        _ip("-n", self.switch, "link", "set", f"port{node.number}", "up")

    def freeze(self, node: Node) -> None:
        """Let an engine do nothing more, while all that it has started goes on."""
        self._processes[node.number].send_signal(signal.SIGSTOP)

    def kill(self, node: Node) -> None:
        """End a node as a loss of power does: its engine, and every process that it has started."""
        pids = list_processes(node.namespace)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        for process in (self._processes.pop(node.number, None), self._mounts.pop(node.number, None)):
            if process is not None:
                process.wait()

    def stop(self) -> None:
        """End the engines with all that runs on them; remove networks and files. Idempotent."""
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(self._stop_engine, self.nodes))
        # Before the namespace of its other end, which would take it away at some time of its own.
        if Path(f"/sys/class/net/smd{self._id}").exists():
            _ip("link", "delete", f"smd{self._id}")
        for namespace in [self.switch, *(node.namespace for node in self.nodes)]:
            if Path(f"/run/netns/{namespace}").exists():
                _ip("netns", "delete", namespace)
        release_namespaces()
        if self.folder.is_mount():
            subprocess.run(["umount", str(self.folder)], check=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)
        if (watcher := self._watcher) is not None:
            self._watcher = None
            watcher.kill()  # before its pipe is closed: there is nothing left for it to stop
            watcher.communicate()

    def _connect_networks(self) -> None:
        _ip("netns", "add", self.switch)
        _ip("-n", self.switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self.switch, "link", "set", "switch", "up")
        self._plug("port0", f"smd{self._id}", None)
        # Two with one network would reach each other's nodes: nobody else chooses until this address is there.
        with (Path(tempfile.gettempdir()) / "smd-networks.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            network = _find_free_network()
            self.address = f"{network}.1"
            _ip("address", "add", f"{self.address}/24", "dev", f"smd{self._id}")
        self.nodes = [replace(node, address=f"{network}.{node.number + 1}") for node in self.nodes]
        _ip("link", "set", f"smd{self._id}", "up")
        for node in self.nodes:
            _ip("netns", "add", node.namespace)
            self._plug(f"port{node.number}", "eth0", node.namespace)
            _ip("-n", node.namespace, "address", "add", f"{node.address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", node.namespace, "link", "set", device, "up")
            # Who asks a registry for an image is told at once that there is no way there.
            _ip("-n", node.namespace, "route", "add", "unreachable", "default")

    def _plug(self, port: str, device: str, namespace: str | None) -> None:
        """Make a cable from a port of the switch to a device here, or in a namespace."""
        end = ["netns", namespace] if namespace else ["netns", str(os.getpid())]
        _ip("-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", device, *end)
        _ip("-n", self.switch, "link", "set", port, "master", "switch")
        _ip("-n", self.switch, "link", "set", port, "up")

    def _stop_engine(self, node: Node) -> None:
        # What it leaves in memory goes with its namespaces, and the rest is in its folder.
        self.kill(node)
        wait_until(lambda: not list_processes(node.namespace))
        # One hierarchy, or one for each kind of resource, by the version of the kernel's control groups.
        for group in [
            *Path("/sys/fs/cgroup").glob(node.namespace),
            *Path("/sys/fs/cgroup").glob(f"*/{node.namespace}"),
        ]:
            for folder, _, _ in os.walk(group, topdown=False):
                wait_until(partial(remove_group, Path(folder)))


class SwarmNodes(EngineNodes):
    """The engines of one folder, joined as a Swarm."""

    @property
    def manager(self) -> Node:
        """The node that commands the others."""
        return self.nodes[0]

    def _join(self) -> None:
        with closing(self.manager.connect()) as api:
            api.init_swarm(advertise_addr=self.manager.address, listen_addr=f"{self.manager.address}:2377")
            token = api.inspect_swarm()["JoinTokens"]["Worker"]
            with ThreadPoolExecutor(len(self.nodes)) as pool:
                list(pool.map(lambda node: self._join_one(node, token), self.nodes[1:]))
            wait_until(lambda: [each["Status"]["State"] for each in api.nodes()] == ["ready"] * len(self.nodes))

    def _join_one(self, node: Node, token: str) -> None:
        with closing(node.connect()) as api:
            api.join_swarm(
                [f"{self.manager.address}:2377"], token, listen_addr=f"{node.address}:2377", advertise_addr=node.address
            )


def _find_free_network() -> str:
    """Return the first three numbers of a network for benchmarks (RFC 2544) in which this machine has no address."""
    done = subprocess.run(["ip", "-json", "address"], check=True, capture_output=True, text=True)
    taken = {
        address["local"].rpartition(".")[0] for device in json.loads(done.stdout) for address in device["addr_info"]
    }
    return next(
        network
        for network in (f"198.{18 + number // 256}.{number % 256}" for number in range(512))
        if network not in taken
    )


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()}")


def main() -> None:
    """Put the Swarm up and say how to use it, or take it down."""
    nodes = SwarmNodes(FOLDER)
    if sys.argv[1:] == ["down"]:
        nodes.stop()
        click.echo("The Swarm is taken down.")
        return
    if (refusal := find_refusal()) is not None:
        raise SystemExit(f"No Swarm on this machine: {refusal}.")
    began = time.monotonic()
    nodes.start(outlast=True)
    click.echo(f"Two engines are one Swarm after {time.monotonic() - began:.1f} s.")
    click.echo(f"export DOCKER_HOST=unix://{nodes.manager.socket}  # the manager; make swarm-down takes it down")


if __name__ == "__main__":
    main()
