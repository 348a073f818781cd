"""Programs that the contract suite runs in containers, and waits for them."""

import json
import time
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from container_runtime.runtime import ContainerRuntime, Exit
from container_runtime.spec import ContainerSpec, Mount

IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/sagemaker-debugger-rules:latest"


DEADLINE_SECONDS = 60.0


MEBIBYTE = 1024 * 1024
Found = TypeVar("Found")


def python(source: str, **changes: Any) -> ContainerSpec:
    """A container that runs ``source``."""
    arguments = {"name": f"test-{uuid.uuid4().hex[:12]}", "image": IMAGE, "entrypoint": ("python", "-c")}
    return ContainerSpec(**{**arguments, "command": (source,), **changes})


def run(runtime: ContainerRuntime, spec: ContainerSpec) -> tuple[Exit, list[str]]:
    """Start, read the log to its end, wait."""
    container = runtime.start(spec)
    lines = [line.text for line in runtime.logs(container)]
    ended = runtime.wait(container, DEADLINE_SECONDS)
    assert ended is not None
    return ended, lines


def wait_until(condition: Callable[[], Found], *, seconds: float = 180) -> Found:
    """Ask every hundredth of a second until the answer is true, and return it."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s"
        time.sleep(0.01)
    return found


def write_wheel(folder: Path, module: str, source: str) -> None:
    """Write a wheel of one module, which pip installs without an index."""
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{module}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{module}.py", source)
        name = module.replace("_", "-")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def in_container(runtime: ContainerRuntime, mount: Mount, name: str) -> str:
    return json.dumps(runtime.path_in_container(mount, name))


def start_and_await_line(runtime: ContainerRuntime, source: str, **changes: Any) -> str:
    container = runtime.start(python(source, **changes))
    assert next(iter(runtime.logs(container))).text == "ready"
    return container


def end_of(runtime: ContainerRuntime, container: str) -> Exit | None:
    """How a container ended that has ended already."""
    assert [found.running for found in runtime.find({})] == [False]
    return runtime.wait(container, DEADLINE_SECONDS)
