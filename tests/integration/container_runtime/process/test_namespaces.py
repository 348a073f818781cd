"""Tests of namespaces, with and without the kernel's permission."""

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.process.loopback_network import read_start_time
from container_runtime.process.namespace_grant import NamespaceGrant, probe_namespaces
from container_runtime.runtime import ContainerStartError, Exit
from container_runtime.spec import ContainerSpec, Mount
from tests.waiting import wait_until

NOBODY = 65534
DEADLINE_SECONDS = 60.0


# The interpreter may be in a folder of root's alone: it becomes another user when all is imported.
BECOME_NOBODY = f"""
import ctypes, fcntl, os, socket, struct, sys
from container_runtime.process import namespaces
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
ctypes.CDLL(None).prctl(4, 1)  # PR_SET_DUMPABLE, as a program has that this user started
"""
AS_NOBODY = f"""
{BECOME_NOBODY}
namespaces.main()
print(os.getuid(), [name for _, name in socket.if_nameindex() if name[0] in "le"])
"""
JOINING_AS_NOBODY = f"""
{BECOME_NOBODY}
ready, write_end = os.pipe()
recorded, _ = os.pipe()
holder = os.fork()
if not holder:
    os.dup2(write_end, 1)
    os.dup2(recorded, 0)
    os.closerange(3, 20)
    namespaces.hold()
os.close(write_end)
with os.fdopen(ready) as answer:
    os.read(answer.fileno(), 5)
try:
    namespaces.enter([(sys.argv[1], namespaces.PROBED, False)], isolated=True, holder=holder)
    same = os.path.samestat(os.stat("/proc/self/ns/net"), os.stat(f"/proc/{{holder}}/ns/net"))
    print(os.getuid(), same, [name for _, name in socket.if_nameindex() if name[0] in "le"])
finally:
    os.kill(holder, 9)
"""


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize(
    ("program", "printed"), [(AS_NOBODY, f"{NOBODY} ['lo']\n"), (JOINING_AS_NOBODY, f"{NOBODY} True ['lo']\n")]
)
def test_an_ordinary_user_needs_a_user_namespace(program: str, printed: str) -> None:
    # Not in pytest's folder, which is root's alone.
    folder = Path(f"/tmp/namespaces-{uuid.uuid4().hex}")
    folder.mkdir(mode=0o755)
    try:
        (folder / "seen").touch()
        command = [sys.executable, "-c", program, str(folder), "isolated"]
        tried = subprocess.run(command, capture_output=True, text=True, check=False)
        if "unshare" in tried.stderr or "mount at" in tried.stderr:
            pytest.skip(f"the kernel grants no namespaces: {tried.stderr}")
        assert (tried.stderr, tried.stdout) == ("", printed)
    finally:
        shutil.rmtree(folder)


def test_where_the_kernel_grants_none(tmp_path: Path) -> None:
    runtime = LocalProcesses(tmp_path / "processes", grant=NamespaceGrant(False, False, "Operation not permitted"))
    mount = Mount(tmp_path, "/opt/ml")
    spec = ContainerSpec(
        "plain",
        "sagemaker-debugger-rules",
        ("import os; print(os.environ['SAGEMAKER_BASE_DIR'], os.path.exists('/opt/ml'))",),
        ("python", "-c"),
        mounts=(mount,),
    )
    try:
        assert runtime.path_in_container(mount, "in") == str(tmp_path / "in")
        container = runtime.start(spec)
        assert [line.text for line in runtime.logs(container)] == [f"{tmp_path} {Path('/opt/ml').exists()}"]
        assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)
        with pytest.raises(ContainerStartError, match=r"Operation not permitted.*docker"):
            runtime.start(ContainerSpec("isolated", "sagemaker-debugger-rules", ("true",), isolated=True))
    finally:
        for found in runtime.find({}):
            runtime.remove(found.id)


@pytest.mark.skipif(not probe_namespaces().network, reason="the kernel grants no namespaces")
@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "killed before"])
def test_a_holder_outlives_its_emulator_if_that_has_recorded_it(is_recorded: bool) -> None:
    program = """
import os, sys
from container_runtime.process.loopback_network import start_holder
with start_holder() as holder:
    print(holder["pid"], holder["start_time"], flush=True)
    if "killed before" in sys.argv:
        os.kill(os.getpid(), 9)
os.kill(os.getpid(), 9)
"""
    command = [sys.executable, "-c", program, "recorded" if is_recorded else "killed before"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == -9, done.stderr
    pid, start_time = map(int, done.stdout.split())
    if is_recorded:
        assert read_start_time(pid) == start_time
        os.kill(pid, 9)
    wait_until(lambda: read_start_time(pid) != start_time, f"process {pid} to end")
