"""Tests of stops and removals."""

import fcntl
import signal
import time

import pytest

from container_runtime.contract.programs import (
    DEADLINE_SECONDS,
    end_of,
    in_container,
    python,
    run,
    start_and_await_line,
)
from container_runtime.runtime import ContainerNotFoundError, ContainerRuntime, Exit
from container_runtime.spec import Mount


def test_stop_lets_a_handler_of_sigterm_finish(runtime: ContainerRuntime) -> None:
    source = """
import signal, sys, time
def stop(*_):
    print("saving", flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
time.sleep(60)
"""
    container = start_and_await_line(runtime, source)
    runtime.stop(container, DEADLINE_SECONDS)
    assert end_of(runtime, container) == Exit(7)
    assert [line.text for line in runtime.logs(container)] == ["ready", "saving"]


def test_stop_kills_after_the_grace_time(runtime: ContainerRuntime) -> None:
    source = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""
    container = start_and_await_line(runtime, source)
    started = time.monotonic()
    runtime.stop(container, 0.3)
    assert 0.3 <= time.monotonic() - started < DEADLINE_SECONDS
    assert end_of(runtime, container) == Exit(128 + signal.SIGKILL)


def test_stop_is_idempotent(runtime: ContainerRuntime) -> None:
    container = start_and_await_line(runtime, "import time; print('ready', flush=True); time.sleep(60)")
    runtime.stop(container, DEADLINE_SECONDS)
    runtime.stop(container, DEADLINE_SECONDS)
    assert end_of(runtime, container) == Exit(128 + signal.SIGTERM)


def test_what_a_container_leaves_running_ends_with_it(runtime: ContainerRuntime, shared: Mount) -> None:
    held, ready = in_container(runtime, shared, "held"), in_container(runtime, shared, "ready")
    source = f"""
import fcntl, os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        lock = open({held}, "w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        open({ready}, "w").close()
        time.sleep(600)
    os._exit(0)
while not os.path.exists({ready}):
    time.sleep(0.01)
"""
    assert run(runtime, python(source, mounts=(shared,)))[0] == Exit(0)
    with (shared.source / "held").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_remove_is_idempotent_and_forgets(runtime: ContainerRuntime) -> None:
    container = runtime.start(python("pass"))
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)
    runtime.remove(container)
    runtime.remove(container)
    assert runtime.find({}) == []
    for use in (runtime.wait, runtime.logs, lambda gone: runtime.stop(gone, 1)):
        with pytest.raises(ContainerNotFoundError, match=container[:12]):
            use(container)


def test_remove_kills_what_still_runs(runtime: ContainerRuntime, shared: Mount) -> None:
    source = f"""
import fcntl, time
lock = open({in_container(runtime, shared, "held")}, "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("ready", flush=True)
time.sleep(60)
"""
    container = start_and_await_line(runtime, source, mounts=(shared,))
    runtime.remove(container)
    with (shared.source / "held").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises while anybody holds it
    assert runtime.find({}) == []


def test_an_id_that_was_never_given_is_not_found(runtime: ContainerRuntime) -> None:
    for nothing in ("no-such-container", "../processes"):
        with pytest.raises(ContainerNotFoundError):
            runtime.wait(nothing)
    runtime.remove("no-such-container")
