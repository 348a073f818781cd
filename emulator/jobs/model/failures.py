"""FailureReason texts of jobs that fail or are stopped."""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from container_runtime.runtime import NETWORK_CLOSED, Exit
from emulator.jobs.model.training_job import MAX_FAILURE_REASON

# What sagemaker-training logs before it repeats the failure file.
_TOOLKIT_REPORT = "Reporting training FAILURE"
# What it writes for a script that was killed while the toolkit itself lived on: exit code 1, no word of memory.
_TOOLKIT_KILLED = f"ExitCode -{signal.SIGKILL.value}"

_FAILURES_TOLD = 2
CLOSED = " (The network of its container is closed: start --allow-internet opens it.)"
_TRACEBACK = "Traceback (most recent call last):"
_TRACEBACK_LINE = '  File "'
# `module.ErrorName: text` or the name alone, at the start of the line.
_EXCEPTION_LINE = re.compile(r"[A-Za-z_][\w.]*(: .*)?$")


LOST_TOO_OFTEN = (
    "What the job ran in was lost too often, each time with the emulator or the engine. Look into their logs for why, "
    "and send the job again."
)


class RequestFailure(Exception):  # noqa: N818 - an outcome of the job, not a defect
    """The request names what is not there or not supported: ``ClientError: <text>``."""


class StopAsked(Exception):  # noqa: N818
    """The job is Stopping and nothing of it runs yet: there is nothing to wait for."""


@dataclass(frozen=True, slots=True)
class ContainerFailure:
    """A container that exited with an error.

    Attributes:
        host: the host it ran on.
        exit: how it ended.
        failure_text: its /opt/ml/output/failure.
        last_lines: the end of its log, oldest first.
        cause: why the emulator ended it; empty where it ended by itself.
    """

    host: str
    exit: Exit
    failure_text: str
    last_lines: Sequence[str]
    cause: str = ""


def describe_algorithm_error(failures: Sequence[ContainerFailure], host_count: int = 1) -> str:
    """FailureReason of a job whose containers exited with an error.

    Args:
        failures: at least one, the first to fail first. When one worker dies, others often fail only for having lost
            it, and may be quicker to exit: so the first two are told.
        host_count: of the job; the host is named where there are several.
    """
    told = failures[:_FAILURES_TOLD]
    max_chars = (MAX_FAILURE_REASON - len("AlgorithmError: ") - len("; ") * (len(told) - 1)) // len(told)
    return "AlgorithmError: " + "; ".join(_describe_failure(each, max_chars, name_host=host_count > 1) for each in told)


def _describe_failure(failure: ContainerFailure, max_chars: int, *, name_host: bool) -> str:
    """Tell what one container says about its end, in at most ``max_chars`` characters.

    The failure file wins where it says something, but lack of memory is said first.
    """
    exit_status, failure_text = failure.exit, failure.failure_text
    prefix = f"{failure.host}: " if name_host else ""
    missed_network = any(line.startswith(NETWORK_CLOSED) for line in failure.last_lines)
    suffix = f"{CLOSED if missed_network else ''}, exit code: {exit_status.code}"
    max_chars -= len(prefix) + len(suffix)
    if failure.cause:
        return f"{prefix}{failure.cause[:max_chars]}{suffix}"
    if failure_text.strip():
        memory = _describe_lack_of_memory(exit_status, failure_text)
        text = f"{memory} {failure_text}" if memory else _fill_error_message(failure_text, failure.last_lines)
        return f"{prefix}{text.strip()[:max_chars]}{suffix}"
    cause = _describe_death(exit_status)
    said = "\n".join(line for line in failure.last_lines if line.strip() and not line.startswith(NETWORK_CLOSED))
    if not said:
        said = "It printed nothing." if cause else "The training container printed nothing before it failed."
    elif cause:
        said = f"Its last lines were:\n{said}"
    text = f"{cause} {said}" if cause else said
    if len(text) > max_chars:
        # The end of a traceback says what happened, so the middle goes.
        keep = max_chars - len(cause) - 5
        text = f"{cause} ... {said[-keep:]}" if cause else f"... {said[-(max_chars - 4) :]}"
    return f"{prefix}{text}{suffix}"


def _fill_error_message(failure_text: str, last_lines: Sequence[str]) -> str:
    """Return the failure file with the script's own error where the toolkit names none.

    AWS's training images capture the script's error for this place; the toolkit by itself leaves it empty, and the
    reason would be in the log only.
    """
    before_report = takewhile(lambda line: _TOOLKIT_REPORT not in line, last_lines)
    said = [line.rstrip() for line in before_report if line.strip() and not line.startswith(NETWORK_CLOSED)]
    if not said:
        return failure_text
    return failure_text.replace('ErrorMessage ""', f'ErrorMessage "{_find_exception(said) or said[-1].strip()}"')


def _find_exception(lines: Sequence[str]) -> str | None:
    """Find the line that names the exception of the last Python traceback, None where there is no traceback.

    Not simply the last line: a hook warns at the script's end, and an engine passes standard output and standard error
    on in separate streams, so that what was printed before the traceback may come after it.
    """
    starts = [number for number, line in enumerate(lines) if line.startswith(_TRACEBACK)]
    # Of a long traceback, the first line is not among the last ones of the log.
    inside = [number for number, line in enumerate(lines) if line.startswith(_TRACEBACK_LINE)]
    if not (starts or inside):
        return None
    return next((line for line in lines[(starts[-1:] or inside)[0] + 1 :] if _EXCEPTION_LINE.match(line)), None)


def _describe_lack_of_memory(exit_status: Exit, failure_text: str) -> str:
    if exit_status.out_of_memory:
        return (
            "The container ran out of memory and was killed. Use a smaller batch or model, or an instance type "
            "with more memory."
        )
    if exit_status.code == 128 + signal.SIGKILL or _TOOLKIT_KILLED in failure_text.splitlines():
        return "The training was killed by signal SIGKILL, as the kernel does when memory runs out."
    return ""


def _describe_death(exit_status: Exit) -> str:
    memory = _describe_lack_of_memory(exit_status, "")
    if memory:
        return memory
    number = exit_status.code - 128
    if 0 < number < signal.NSIG and number in set(signal.Signals):
        return f"The container was ended by signal {signal.Signals(number).name}."
    return ""
