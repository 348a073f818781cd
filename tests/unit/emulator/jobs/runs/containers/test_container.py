"""Tests of stopping a container, though the back end refuses at first."""

from pathlib import Path

from container_runtime.process.local_processes import LocalProcesses
from container_runtime.runtime import ContainerRuntimeError
from container_runtime.spec import ContainerSpec
from emulator.jobs.runs.containers.container import JobContainer

_DEADLINE_SECONDS = 60.0
_SLEEP = f"import time; time.sleep({10 * _DEADLINE_SECONDS})"


class _RefusingOnce(LocalProcesses):
    """Real processes, of which the first stop is refused, as an engine does that cannot kill just then."""

    refused = 0

    def stop(self, container_id: str, grace_seconds: float) -> None:
        if not self.refused:
            self.refused += 1
            raise ContainerRuntimeError("it did not receive an exit event")
        super().stop(container_id, grace_seconds)


def test_a_stop_that_was_refused_is_asked_for_again(tmp_path: Path) -> None:
    runtime = _RefusingOnce(tmp_path / "processes")
    started = runtime.start(ContainerSpec("sleeper", "sagemaker-debugger-rules", (_SLEEP,), ("python", "-c")))
    container = JobContainer(runtime, started, "sleeper", lambda _line: None)
    container.follow()
    try:
        container.ask_stop(0.0)
        assert container.wait(_DEADLINE_SECONDS) is not None
        assert runtime.refused == 1
    finally:
        container.close()
    assert runtime.find({}) == []
