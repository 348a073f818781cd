"""IPython extension: an emulator for the AWS clients of a notebook's kernel."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from sdk_compat.emulator_process import EmulatorStartError
from sdk_compat.environment import DEFAULT_ACCOUNT_ID, REMOTE_VARIABLE
from sdk_compat.notebook import TrainingJob
from sdk_compat.process_environment import ProcessEnvironment
from sdk_compat.sagemaker_emulator import ROLE_NAME, SageMakerEmulator

_ANSWER_SECONDS = 60
# What `unload_ipython_extension` undoes.
_undo: list[Callable[[], None]] = []


def load_ipython_extension(ipython: Any) -> None:
    """Lead the kernel's AWS clients to the emulator that runs, else to one that ends with the kernel.

    It also defines ``%training_job NAME``, which shows a job and its rules as they change.

    Raises:
        EmulatorStartError: the one that SMDEBUG_EMULATOR_REMOTE names cannot be used; or none was running, and none
            could be started. The message is the reason.
    """
    unload_ipython_extension(ipython)
    running = _find_running()
    if running is None:
        emulator = SageMakerEmulator()
        emulator.lead()
        _undo.append(emulator.stop)
        address = emulator.endpoint_url
        kind = "ends with this kernel, and its jobs with it: to keep them, run `smdebug-emulator start --detach` before"
    else:
        environment = ProcessEnvironment()
        environment.lead(running)
        _undo.append(environment.restore)
        address, kind = running["AWS_ENDPOINT_URL"], "was running already"
    ipython.register_magic_function(_show_training_job, "line", "training_job")
    print(  # noqa: T201 - what the cell shows
        f"AWS clients of this kernel use the emulator at {address}, which {kind}.\n"
        f"Role for jobs: arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/{ROLE_NAME}. Console: {address}/console"
    )


def unload_ipython_extension(ipython: Any) -> None:  # noqa: ARG001 - IPython gives it
    """Restore the kernel's environment, and stop the emulator that was started for it."""
    while _undo:
        _undo.pop()()


def _show_training_job(line: str) -> None:
    """Show a training job and its rules as they change, until the job ends: ``%training_job NAME``."""
    TrainingJob(line.strip()).watch()


def _find_running() -> dict[str, str] | None:
    """Return the variables that lead clients to the emulator that is named, or runs on the state folder; None if none.

    Raises:
        EmulatorStartError: the one that is named cannot be used.
    """
    command = [sys.executable, "-P", "-m", "emulator", "env", "--role", ROLE_NAME]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWER_SECONDS, check=False, env=dict(os.environ)
        )
    except subprocess.TimeoutExpired as error:
        raise EmulatorStartError(f"The emulator did not answer within {_ANSWER_SECONDS} s.") from error
    if done.returncode and REMOTE_VARIABLE in os.environ:
        # Not one of this kernel's own instead: jobs are meant for the one that is named.
        raise EmulatorStartError(f"{done.stderr.strip()}\nTo use none but this kernel's, unset {REMOTE_VARIABLE}.")
    if done.returncode:
        return None
    words = shlex.split(done.stdout)
    exports = words[: words.index("unset")] if "unset" in words else words
    return dict(word.split("=", 1) for word in exports if "=" in word)
