"""Tests of containers that outlive their owner and are found by their labels."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable

from container_runtime.contract.fixtures import Target
from container_runtime.contract.programs import DEADLINE_SECONDS, python, start_and_await_line
from container_runtime.runtime import ContainerRuntime, Exit
from container_runtime.spec import Mount


def test_a_new_runtime_finds_containers_by_their_labels(make_runtime: Callable[[], ContainerRuntime]) -> None:
    old = make_runtime()
    labels = {"job": "one", "kind": "training"}
    running = start_and_await_line(old, "import time; print('ready', flush=True); time.sleep(600)", labels=labels)
    ended = old.start(python("print('done'); raise SystemExit(5)", labels={"job": "two", "kind": "training"}))
    assert old.wait(ended, DEADLINE_SECONDS) == Exit(5)
    new = make_runtime()
    found = {container.id: container for container in new.find({"kind": "training"})}
    assert {identity: container.running for identity, container in found.items()} == {running: True, ended: False}
    assert labels.items() <= found[running].labels.items()
    assert [container.id for container in new.find({"kind": "training", "job": "two"})] == [ended]
    assert new.find({"kind": "rule"}) == []
    assert new.wait(ended, DEADLINE_SECONDS) == Exit(5)
    assert [line.text for line in new.logs(ended)] == ["done"]
    new.stop(running, DEADLINE_SECONDS)
    assert old.wait(running, DEADLINE_SECONDS) == Exit(128 + signal.SIGTERM)


OWNER = """
import pickle, time
from pathlib import Path
from container_runtime.contract.programs import python
from container_runtime.spec import Mount
runtime = pickle.loads({target!r}).open()
mount = Mount(Path({shared!r}), "/opt/ml")
flag = runtime.path_in_container(mount, "go")
source = f'''
import os, time
print("before", flush=True)
while not os.path.exists({{flag!r}}):
    time.sleep(0.01)
print("after")
raise SystemExit(9)
'''
print(runtime.start(python(source, mounts=(mount,), labels={{"job": "kept"}})), flush=True)
time.sleep(600)
"""


def test_container_outlives_an_owner_that_is_killed(target: Target, shared: Mount) -> None:
    source = OWNER.format(target=pickle.dumps(target), shared=str(shared.source))
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        container = owner.stdout.readline().strip()
        os.kill(owner.pid, signal.SIGKILL)
    runtime = target.open()
    try:
        (found,) = runtime.find({"job": "kept"})
        assert (found.id, found.running) == (container, True)
        lines = runtime.logs(container)
        assert next(lines).text == "before"
        (shared.source / "go").touch()
        assert [line.text for line in lines] == ["after"]
        assert runtime.wait(container, DEADLINE_SECONDS) == Exit(9)
    finally:
        runtime.remove(container)
        runtime.close()
