"""Tests of specs that cannot run, and of several containers at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from container_runtime.contract.programs import DEADLINE_SECONDS, IMAGE, in_container, python, run
from container_runtime.runtime import ContainerRuntime, ContainerStartError, Exit, ImageNotFoundError
from container_runtime.spec import ContainerSpec, Mount


def test_unknown_image_says_what_there_is(runtime: ContainerRuntime) -> None:
    spec = python("pass", image="no-such-image-anywhere:1")
    for use in (lambda: runtime.resolve_image(spec.image), lambda: runtime.start(spec)):
        with pytest.raises(ImageNotFoundError, match=r"no-such-image-anywhere.*sagemaker-debugger-rules"):
            use()
    assert not runtime.has_image(spec.image, exactly=False)
    assert runtime.find({}) == []


def test_image_of_another_version_is_used_and_said(runtime: ContainerRuntime) -> None:
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-cpu-py312"
    resolved = runtime.resolve_image(image)
    assert resolved.requested == image
    assert resolved.substitution is not None
    assert "2.8.0-cpu-py312" in resolved.substitution
    assert runtime.describe_substitution(image) == resolved.substitution
    assert runtime.resolve_image(IMAGE).substitution is None
    assert runtime.describe_substitution(IMAGE) is None
    assert not runtime.has_image(image)
    assert runtime.has_image(image, exactly=False)


@pytest.mark.parametrize("program", ["no-such-program", "/no/such/program"])
def test_missing_entry_point_is_said_at_the_start(runtime: ContainerRuntime, program: str) -> None:
    spec = python("pass", entrypoint=(program,))
    with pytest.raises(ContainerStartError, match=program):
        runtime.start(spec)
    assert runtime.find({}) == []
    assert run(runtime, python("pass", name=spec.name))[0] == Exit(0)


def test_name_that_is_taken(runtime: ContainerRuntime) -> None:
    spec = python("pass")
    container = runtime.start(spec)
    with pytest.raises(ContainerStartError, match=spec.name):
        runtime.start(spec)
    assert runtime.wait(container, DEADLINE_SECONDS) == Exit(0)


def test_missing_folder_to_mount(runtime: ContainerRuntime, tmp_path: Path) -> None:
    with pytest.raises(ContainerStartError, match="nowhere"):
        runtime.start(python("pass", mounts=(Mount(tmp_path / "nowhere", "/opt/ml", own=()),)))
    assert not (tmp_path / "nowhere").exists()


def test_two_run_at_once(runtime: ContainerRuntime, shared: Mount) -> None:
    def meet(mine: str, other: str) -> ContainerSpec:
        source = f"""
import os, time
open({in_container(runtime, shared, mine)}, "w").close()
deadline = time.monotonic() + {DEADLINE_SECONDS}
while not os.path.exists({in_container(runtime, shared, other)}):
    assert time.monotonic() < deadline
    time.sleep(0.01)
print({mine!r})
"""
        return python(source, mounts=(shared,))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, runtime, meet("a", "b"))
        second = pool.submit(run, runtime, meet("b", "a"))
        assert first.result() == (Exit(0), ["a"])
        assert second.result() == (Exit(0), ["b"])


def test_one_container_is_waited_for_and_read_by_many(runtime: ContainerRuntime) -> None:
    container = runtime.start(python("print('x' * 10); raise SystemExit(4)"))
    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(runtime.wait, container, DEADLINE_SECONDS) for _ in range(4)]
        logs = [pool.submit(lambda: [line.text for line in runtime.logs(container)]) for _ in range(4)]
        assert {wait.result() for wait in waits} == {Exit(4)}
        assert [log.result() for log in logs] == [["x" * 10]] * 4
