"""One warm worker: AWS's runtime client, in a container or a process.

It serves one version of one function.
"""

import hashlib
import logging
import math
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from container_runtime.runtime import ContainerRuntime, ContainerRuntimeError, EngineUnavailableError, Exit
from container_runtime.spec import ContainerSpec, Mount
from emulator.exceptions import UnsupportedRuntimeError, WorkerFailure, WorkerStartError
from emulator.lambda_functions import node, python
from emulator.lambda_functions.function_code import extract_zip
from emulator.lambda_functions.invocation import Invocation, InvocationResult, build_start_failure
from emulator.lambda_functions.runtime_api import RuntimeApi
from emulator.lambda_functions.worker_log import WorkerLog
from emulator.moto_services.cloudwatch.logs import LogGroups
from emulator.moto_services.functions.backend import Function
from emulator.security.trust import build_trust

logger = logging.getLogger(__name__)

IMAGE = "smdebug-emulator/lambda:latest"
# The time from the start of the container to its first request for an invocation. AWS allows 10 s; a busy laptop needs
# more.
START_TIMEOUT_S = 60.0
# A worker of this age is replaced. Its credentials are valid for one hour more; a function runs for at most 15 minutes.
_CREDENTIALS_SECONDS = 12 * 3600.0
# The longest wait for the log's tail. Lines are held back for a moment, and a busy machine reads them late.
_TAIL_SECONDS = 10.0
_MIB = 1024 * 1024


class WorkerSettings(NamedTuple):
    """The settings that all workers of one emulator share.

    Attributes:
        container_runtime: runs the workers.
        endpoint_url: the emulator's URL for workers: ``<scheme>://<container_runtime.host_address>:<port>``.
        work_dir: the parent of the workers' folders, which nothing else uses; its content is deleted.
        credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY of the workers.
        issue_credentials: creates credentials, which are used instead of ``credentials``. Its arguments are the role,
            the function's name, the lifetime in seconds and the account.
        ca_bundle: the CA certificates that the functions' clients must trust; None if the emulator has no TLS.
        pythons: folders of interpreters, searched before PATH.
    """

    container_runtime: ContainerRuntime
    endpoint_url: str
    work_dir: Path
    credentials: Mapping[str, str]
    pythons: tuple[Path, ...] = ()
    issue_credentials: Callable[[str, str, float, str], Mapping[str, str]] | None = None
    ca_bundle: Path | None = None

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the containers of this emulator's workers."""
        state = hashlib.sha256(str(self.work_dir.resolve()).encode()).hexdigest()[:32]
        return {"smdebug-emulator.role": "lambda-worker", "smdebug-emulator.state": state}


class Worker:
    """Runs the invocations of one function version, one at a time."""

    def __init__(self, settings: WorkerSettings, function: Function) -> None:
        self.function = function
        self.idle_since = time.monotonic()
        self._settings = settings
        # Unguessable, because it names a folder and a container next to those of other workers.
        self._id = secrets.token_hex(16)
        self._folder = settings.work_dir / self._id
        self._worker_log = WorkerLog(LogGroups(function.account, function.region), function.name, function.version)
        self._api: RuntimeApi | None = None
        # Set if the function's language, or its version, is not the image's.
        self._entrypoint: tuple[str, ...] | None = None
        self._packages: str | None = None
        self._container_id: str | None = None
        self._started_at = 0.0
        self._began_at: float | None = None
        self._init_reported = False
        self._follower: threading.Thread | None = None
        self._closing = threading.Lock()
        self._closed = False
        self._broken = False

    @property
    def usable(self) -> bool:
        """Whether the worker can take an invocation."""
        if self._api is None or time.monotonic() - self._started_at > _CREDENTIALS_SECONDS:
            return False
        return not (self._api.ended or self._closed or self._broken)

    def start(self) -> None:
        """Unpack the code and start the container; returns before the function's module is imported.

        Raises:
            WorkerStartError: the worker cannot be started; the message says what to do.
        """
        self._started_at = time.monotonic()
        try:
            api = self._api = RuntimeApi(self._settings.container_runtime.host_address, self._note_start)
            mounts = self._stage_code()
            self._container_id = self._settings.container_runtime.start(self._build_spec(api, mounts))
        except (ContainerRuntimeError, OSError) as error:
            raise WorkerStartError(str(error)) from error
        self._follower = threading.Thread(target=self._follow, args=(self._container_id,), name="lambda-worker")
        self._follower.daemon = True
        self._follower.start()

    def invoke(self, invocation: Invocation, *, with_log_tail: bool = False) -> InvocationResult:
        """Run one invocation and return its result. Errors of the function are returned, not raised."""
        self._began_at = None
        try:
            if self._api is None:
                raise build_start_failure(invocation.request_id, "the worker was not started")
            answer = self._api.run(invocation, START_TIMEOUT_S)
            payload, failed = answer.payload, answer.failed
        except WorkerFailure as failure:
            # The worker may still be busy with the failed invocation.
            self._broken = True
            payload, failed = failure.payload, True
            if failure.log:
                self._worker_log.line(failure.log)
        # As in AWS, the duration is 0 if the worker did not start.
        duration_ms = (time.monotonic() - self._began_at) * 1000 if self._began_at is not None else 0.0
        wait_for_tail = self._worker_log.finish_invocation(self._build_end(invocation, duration_ms))
        self.idle_since = time.monotonic()
        return InvocationResult(
            request_id=invocation.request_id,
            payload=payload,
            function_error="Unhandled" if failed else None,
            version=self.function.version,
            log_tail=wait_for_tail(_TAIL_SECONDS) if with_log_tail else "",
        )

    def close(self) -> None:
        """End the worker and remove its container and its folder. Idempotent."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            if self._api is not None:
                self._api.close()
            if self._container_id is not None:
                self._remove_container(self._container_id)
            self._worker_log.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _remove_container(self, container_id: str) -> None:
        try:
            with suppress(EngineUnavailableError):
                self._settings.container_runtime.stop(container_id, 0.0)
            if self._follower is not None:
                self._follower.join(10.0)
            self._settings.container_runtime.remove(container_id)
        except ContainerRuntimeError:
            # At its next start, the emulator finds the container by its labels and removes it.
            logger.exception("The Lambda worker %s could not be removed.", container_id)

    def _follow(self, container_id: str) -> None:
        how = Exit(code=255)
        try:
            self._worker_log.follow(self._settings.container_runtime.logs(container_id))
            how = self._settings.container_runtime.wait(container_id, 10.0) or how
        except ContainerRuntimeError:
            logger.exception("The log of Lambda worker %s was lost; the worker is given up.", container_id)
        if self._api is not None:
            self._api.worker_exited(how)

    def _note_start(self, invocation: Invocation) -> None:
        self._began_at = time.monotonic()
        self._worker_log.start_invocation(f"START RequestId: {invocation.request_id} Version: {self.function.version}")

    def _build_end(self, invocation: Invocation, duration_ms: float) -> list[str]:
        """Build END and REPORT, without Lambda's "Max Memory Used": the container interface does not report it."""
        report = [
            f"REPORT RequestId: {invocation.request_id}",
            f"Duration: {duration_ms:.2f} ms",
            f"Billed Duration: {math.ceil(duration_ms)} ms",
            f"Memory Size: {self.function.memory_mb} MB",
        ]
        ready_at = self._api.ready_at if self._api is not None else None
        if ready_at is not None and not self._init_reported:
            self._init_reported = True
            report.append(f"Init Duration: {(ready_at - self._started_at) * 1000:.2f} ms")
        return [f"END RequestId: {invocation.request_id}", "\t".join([*report, ""])]

    def _stage_code(self) -> tuple[Mount, ...]:
        # As in AWS, /tmp is the only folder that a function can write to.
        scratch = Mount(self._folder / "tmp", "/tmp")  # noqa: S108 - inside the container
        scratch.source.mkdir(parents=True)
        if self.function.image_uri is not None:
            return (scratch,)
        runs_node = self.function.runtime.startswith("nodejs")
        if not runs_node and not self.function.runtime.startswith("python"):
            raise UnsupportedRuntimeError(
                f"The runtime {self.function.runtime!r} cannot be run here: zip files run as Python (python3.x) and "
                "Node (nodejs); for another language create the function from an image that brings its runtime."
            )
        task = self._folder / "task"
        extract_zip(self.function.code_zip, task)
        self._folder.chmod(0o755)
        mounts = [Mount(task, "/var/task", read_only=True, exclusive=True), scratch]
        container_runtime = self._settings.container_runtime
        client = node.CLIENT if runs_node else python.CLIENT
        interpreter = node.find_node(container_runtime.name) if runs_node else self._find_other_python()
        if interpreter is not None:
            mounts.append(Mount(self._folder / "runtime", "/var/runtime", read_only=True))
            mounts[-1].source.mkdir()
            shutil.copy(Path(__file__).with_name(client), mounts[-1].source)
            self._entrypoint = (interpreter, container_runtime.path_in_container(mounts[-1], client))
        if self.function.layers:
            layers = self._folder / "opt"
            for layer in self.function.layers:
                extract_zip(layer, layers)
            # With the interpreter of the image, which is below /opt, too.
            mounts.append(Mount(layers, "/opt", read_only=True, own=(), exclusive=True))
        return tuple(mounts)

    def _find_other_python(self) -> str | None:
        """Find the interpreter of the function's runtime; None for the default interpreter.

        If the interpreter is missing, a warning is logged and the default interpreter is used.
        """
        back_end, version = self._settings.container_runtime.name, self.function.runtime.removeprefix("python")
        present = python.OWN_VERSION if back_end == "process" else python.IMAGE_VERSION
        if version == present:
            return None
        if back_end != "process":
            reason = "in containers there is no other"
        elif not (packages := python.find_packages()):
            reason = "the emulator's own environment lacks awslambdaric, which the other needs"
        elif (interpreter := python.find_python(version, self._settings.pythons)) is None:
            reason = f"no python{version} that runs is on PATH, or in a folder that SMDEBUG_EMULATOR_PYTHONS names"
        else:
            self._packages = packages
            return interpreter
        text = f"The function asks for {self.function.runtime} and runs under Python {present}: {reason}."
        logger.warning("%s: %s", self.function.name, text)
        self._worker_log.line(f"smdebug-emulator: {text}")
        return None

    def _build_spec(self, api: RuntimeApi, mounts: tuple[Mount, ...]) -> ContainerSpec:
        handler = self.function.handler
        variables, trusted = build_trust(self._settings.ca_bundle, self._settings.container_runtime.path_in_container)
        return ContainerSpec(
            name=f"smdebug-lambda-{self.function.name[:40]}-{self._id}",
            image=self.function.image_uri or IMAGE,
            command=(handler,) if handler and self.function.image_uri is None else (),
            entrypoint=self._entrypoint,
            environment=self._build_environment(api, mounts) | variables,
            mounts=mounts + trusted,
            servers={api.port: api.take},
            read_only_root=True,
            labels=self._settings.labels,
            memory_bytes=self.function.memory_mb * _MIB,
        )

    def _find_credentials(self) -> Mapping[str, str]:
        if self._settings.issue_credentials is None:
            return {**self._settings.credentials, "AWS_ACCESS_KEY_ID": self.function.account}
        function = self.function
        issue = self._settings.issue_credentials
        return issue(function.role, function.name, _CREDENTIALS_SECONDS, function.account)

    def _build_environment(self, api: RuntimeApi, mounts: tuple[Mount, ...]) -> dict[str, str]:
        """Combine Lambda's variables, the function's configuration and the defaults; earlier ones take precedence."""
        function, container_runtime = self.function, self._settings.container_runtime
        seen = {mount.target: container_runtime.path_in_container(mount, "").rstrip("/") for mount in mounts}
        task_root = seen.get("/var/task", "/var/task")
        search_path = [task_root, *([f"{seen['/opt']}/python"] if "/opt" in seen else [])]
        if "PYTHONPATH" in function.environment:
            search_path.append(function.environment["PYTHONPATH"])
        environment = {
            "AWS_ENDPOINT_URL": self._settings.endpoint_url,
            "AWS_EC2_METADATA_DISABLED": "true",
            # Otherwise, a worker that is a local process would read the user's own profile.
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "LANG": "en_US.UTF-8",
            "TZ": ":UTC",
            **self._find_credentials(),
            **function.environment,
            "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory_mb),
            "AWS_LAMBDA_FUNCTION_NAME": function.name,
            "AWS_LAMBDA_FUNCTION_VERSION": function.version,
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "AWS_LAMBDA_LOG_GROUP_NAME": self._worker_log.group,
            "AWS_LAMBDA_LOG_STREAM_NAME": self._worker_log.stream,
            "AWS_LAMBDA_RUNTIME_API": api.address,
            "AWS_DEFAULT_REGION": function.region,
            "AWS_REGION": function.region,
            "LAMBDA_TASK_ROOT": task_root,
        }
        if function.handler:
            environment["_HANDLER"] = function.handler
        if self._packages:
            environment["SMDEBUG_EMULATOR_PACKAGES"] = self._packages
        if function.image_uri is None:
            environment["PYTHONPATH"] = os.pathsep.join(search_path)
        return environment
