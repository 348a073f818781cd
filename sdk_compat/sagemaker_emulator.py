"""Emulator of a Python program's own, for a with statement."""

import os
import shutil
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Self

from sdk_compat.emulator_client import EmulatorClient
from sdk_compat.emulator_process import EmulatorProcess
from sdk_compat.environment import DEFAULT_REGION, prepare_environment
from sdk_compat.process_environment import ProcessEnvironment

ROLE_NAME = "smdebug-emulator"


class SageMakerEmulator(EmulatorClient):
    """An emulator of its own. Within its with statement, all AWS clients of this process and its subprocesses use it.

        with SageMakerEmulator(runtime="process") as emulator:
            estimator.fit(wait=False)
            emulator.assert_rule(estimator, "VanishingGradient", "NoIssuesFound")

    Attributes:
        variables: the environment variables that redirect AWS clients to it.
        state_dir: the folder with its jobs and S3's objects.
    """

    def __init__(
        self,
        runtime: str = "auto",
        *,
        state_dir: Path | str | None = None,
        region: str = DEFAULT_REGION,
        allow_internet: bool = False,
        warm: str | None = "",
    ) -> None:
        """Start the emulator and return when it is ready.

        Args:
            runtime: what jobs run in: ``docker``, ``process``, or ``auto`` for Docker where an engine answers.
            state_dir: a folder that keeps jobs and objects; None for a temporary one, which is deleted at the end.
            region: the region of clients that name none.
            allow_internet: whether Docker containers can access the internet.
            warm: images, separated by commas, whose frameworks are imported ahead for jobs that are local processes;
                None to start each of those with a new interpreter.

        Raises:
            EmulatorStartError: the emulator did not start; the message is the reason.
        """
        self._temporary = Path(mkdtemp(prefix="smdebug-emulator-"))
        self.state_dir = Path(state_dir or f"{self._temporary}/state")
        self._environment = ProcessEnvironment()
        try:
            self._process = EmulatorProcess(
                self.state_dir.absolute(),
                runtime=runtime,
                allow_internet=allow_internet,
                warm=warm,
                remove=self._temporary,
                in_terminal=False,
            )
        except BaseException:
            self._remove_folder()
            raise
        try:
            super().__init__(self._process.endpoint_url, ROLE_NAME, region)
            self.variables = self._prepare_environment()
        except BaseException:
            self.stop()
            raise

    def __repr__(self) -> str:
        return f"SageMakerEmulator({self.endpoint_url}, state in {self.state_dir})"

    @property
    def is_running(self) -> bool:
        """Whether its process runs."""
        return self._process.process.poll() is None

    def lead(self) -> None:
        """Lead the AWS clients of this process to the emulator until ``restore``, as the with statement does."""
        self._environment.lead(self.variables)

    def restore(self) -> None:
        """Restore the environment from before ``lead``. Idempotent."""
        self._environment.restore()

    def reset(self) -> None:
        """Stop all jobs and delete everything in all services. The buckets made here are created again, empty."""
        super().reset()
        # The role and its credentials are gone, too.
        self.variables.update(self._prepare_environment())
        if self._environment.is_led:
            self._environment.lead(self.variables)

    def log_text(self) -> str:
        """Return the emulator's log so far."""
        return self._process.log_text()

    def stop(self) -> None:
        """Stop the emulator with all its jobs, and restore the environment. Idempotent."""
        self._environment.restore()
        try:
            self._process.stop()
        finally:
            self._remove_folder()

    def __enter__(self) -> Self:
        self.lead()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _prepare_environment(self) -> dict[str, str]:
        return prepare_environment(
            self.endpoint_url,
            os.environ,
            region=self.region,
            folder=self._temporary / "clients",
            role_name=ROLE_NAME,
        )

    def _remove_folder(self) -> None:
        shutil.rmtree(self._temporary, ignore_errors=True)
