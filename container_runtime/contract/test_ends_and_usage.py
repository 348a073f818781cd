"""Tests of the ends of containers, and of what they use."""

import signal

import pytest

from container_runtime.back_ends import Traits
from container_runtime.contract.programs import DEADLINE_SECONDS, MEBIBYTE, in_container, python, run, wait_until
from container_runtime.meter import Load
from container_runtime.runtime import ContainerNotFoundError, ContainerRuntime, Exit, Usage
from container_runtime.spec import Mount


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


def test_usage_and_meter_of_a_running_container(runtime: ContainerRuntime, traits: Traits, shared: Mount) -> None:
    """Processor time of processes that have ended, memory that is held, bytes written: as its own, and for as long."""
    written = in_container(runtime, shared, "written")
    source = f"""
import os, pathlib, time
block = bytearray(b"x") * (100 << 20)
if (pid := os.fork()) == 0:
    while time.process_time() < 0.5:
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

    def find_load() -> Load | None:
        load = meter.read()
        assert load is not None
        return load if 100 * MEBIBYTE <= load.memory_bytes < 180 * MEBIBYTE else None

    def find_usage() -> Usage | None:
        usage = runtime.read_usage(container)
        assert usage is not None
        return usage if 100 * MEBIBYTE <= usage.memory_bytes < 180 * MEBIBYTE else None

    load, usage = wait_until(find_load), wait_until(find_usage)
    assert load is not None
    assert usage is not None
    assert 0.5 <= load.cpu_seconds < 60, "the processes that have ended count"
    assert 0.5 <= usage.cpu_seconds < 60
    assert load.cpu_seconds >= first.cpu_seconds
    if traits.counts_disk:
        assert 40 * MEBIBYTE <= load.written_bytes < 60 * MEBIBYTE
        assert load.io_operations >= 1
    assert (load.received_bytes is None) == (load.sent_bytes is None) == (not traits.counts_network)
    runtime.stop(container, 0.0)
    assert meter.read() is None
    assert runtime.read_usage(container) is None
    runtime.remove(container)
    for measure in (runtime.open_meter, runtime.read_usage):
        with pytest.raises(ContainerNotFoundError):
            measure(container)
