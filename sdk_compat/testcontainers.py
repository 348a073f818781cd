"""The emulator in a container, for tests on machines where it cannot run natively.

With ``testcontainers`` (``pip install 'smdebug-emulator[testcontainers]'``):

    with SageMakerContainer() as sagemaker:
        sagemaker.get_client("sagemaker").list_training_jobs()

The pytest plugin does the same with ``--sagemaker-runtime container``.
"""

import os
import time
from typing import Any

from sdk_compat.aws_variables import EmulatorAnswerError, NoAnswerError
from sdk_compat.remote import Remote, RemoteEmulator

try:
    from testcontainers.core.container import DockerContainer
except ImportError as error:
    raise ImportError("This needs testcontainers: pip install 'smdebug-emulator[testcontainers]'") from error

from typing import Self

IMAGE = "smdebug-emulator/emulator"
IMAGE_VARIABLE = "SMDEBUG_EMULATOR_IMAGE"
PORT = 4580
_START_SECONDS = 120.0
_STOP_SECONDS = 60
_POLL_SECONDS = 0.1
# Only where the engine is on this machine is its loopback interface this one's.
_THIS_MACHINE = ("localhost", "127.0.0.1", "::1")


class ContainerStartError(EmulatorAnswerError):
    """The container ended, or does not answer; the message is its log or the reason."""


class SageMakerContainer(DockerContainer):
    """An emulator whose jobs are processes of its container, on a port of this machine's loopback interface."""

    def __init__(self, image: str | None = None, **options: Any) -> None:
        """Describe the container; nothing runs before ``start``, or the beginning of a with statement.

        Args:
            image: the image; by default that of ``SMDEBUG_EMULATOR_IMAGE``, else the one that
                ``smdebug-emulator images build emulator`` builds.
            options: those of ``DockerContainer``, such as ``volumes``.
        """
        # With namespaces of its own each job has an /opt/ml; it takes no privilege.
        options = {"security_opt": ["seccomp=unconfined"], **options}
        super().__init__(image or os.environ.get(IMAGE_VARIABLE) or IMAGE, **options)
        self.with_env("SMDEBUG_EMULATOR_BEHIND", "loopback")
        loopback_alone: Any = ("127.0.0.1",)
        self.ports[str(PORT)] = loopback_alone

    def start(self) -> Self:
        """Start the container and wait until the emulator answers.

        Raises:
            ContainerStartError: it does not; the message is the reason.
        """
        host = self.get_docker_client().host()
        if host not in _THIS_MACHINE:
            raise ContainerStartError(
                f"The Docker engine is on {host}, whose loopback interface this machine does not reach: start the "
                "emulator there, and name it with SMDEBUG_EMULATOR_REMOTE."
            )
        super().start()
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                if Remote(self.get_url()).ask("health")["status"] == "running":
                    return self
            # TimeoutError: the container ended before the library could look up its port.
            except (NoAnswerError, ConnectionError, TimeoutError) as error:
                last = str(error)
            else:
                last = "it is still starting"
            container = self.get_wrapped_container()
            container.reload()
            if container.status not in ("created", "running") or time.monotonic() > deadline:
                text = self.log_text().strip() or last
                self.stop()
                raise ContainerStartError(text)
            time.sleep(_POLL_SECONDS)

    def get_url(self) -> str:
        """Return the emulator's URL, the value of ``AWS_ENDPOINT_URL`` for clients."""
        return f"http://127.0.0.1:{self.get_exposed_port(PORT)}"

    def get_client(self, service: str, region: str = "us-east-1") -> Any:
        """Create a boto3 client that uses the emulator."""
        from sdk_compat.boto3_client import EmulatorSession

        return EmulatorSession(self.get_url(), region).client(service)

    def log_text(self) -> str:
        """Return the emulator's log so far."""
        return str(self.get_wrapped_container().logs().decode(errors="replace"))

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        """Let the emulator end its jobs, then remove the container and its volume."""
        if self._container is not None:
            self._container.stop(timeout=_STOP_SECONDS)
        super().stop(force, delete_volume)
        self._container = None


class ContainerEmulator(RemoteEmulator):
    """A container in place of an ``EmulatorProcess``, for the pytest plugin."""

    def __init__(self) -> None:
        """Start it.

        Raises:
            ContainerStartError: see ``SageMakerContainer``.
        """
        self._container = SageMakerContainer().start()
        super().__init__(self._container.get_url(), os.environ)

    def log_text(self) -> str:
        """Return the container's log so far."""
        return self._container.log_text()

    def stop(self) -> int:
        """Stop and remove it."""
        self._container.stop()
        return 0
