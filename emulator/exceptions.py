"""Shared errors of the emulator: each says the problem, where, and the remedy.

EmulatorError
├── AwsError                      code, message, HTTP status; leaves through the gateway or Lambda's Invoke
│   ├── ValidationException       a request that breaks the model, an unknown job, a job in the wrong state
│   ├── ResourceInUse             a name that is taken
│   ├── ResourceNotFound          a tag's resource that does not exist
│   ├── ResourceLimitExceeded     more rules, tags or instances than a job may have
│   ├── AccessDeniedException     a Host, Origin or site that is not ours, a path that is closed
│   ├── MissingAuthenticationToken
│   ├── UnknownOperationException
│   ├── SerializationException    a body that is not JSON of the operation's shape
│   └── InternalFailure
├── SignatureError                who signed a request may not ask for it; each service has its own words
├── ObjectStoreError              S3 as the jobs see it
│   ├── NoSuchBucket
│   ├── NoSuchKey
│   └── DamagedObjectError        an object whose file is not what was written
├── TargetError                   an event that a target cannot get, however often it is tried
│   ├── UnsupportedTargetError
│   └── TargetInputError
├── TargetGoneError               a target that is not there now
├── EventPatternError             an event pattern that EventBridge refuses; its reason
├── ScheduleError                 a schedule expression that is none
├── LogPatternError               a filter pattern of CloudWatch Logs that cannot be matched
├── InvokeError                   a function that was not run
│   ├── FunctionNotFoundError
│   ├── FunctionCodeError
│   ├── WorkerStartError          no worker could be started
│   │   ├── UnsafeZipError
│   │   └── UnsupportedRuntimeError
│   ├── TooManyInvocationsError
│   └── InvokerClosedError
├── WorkerFailure                 a function that was run and did not answer; the caller gets its payload
└── StartupError                  the emulator cannot start; its text is the one line the user sees
"""

from __future__ import annotations

import json


class EmulatorError(Exception):
    """An error that the emulator expects and has words for."""


class AwsError(EmulatorError):
    """An error on the wire: a code, a message and an HTTP status, in the form of the protocol that was asked."""

    status = 400

    def __init__(self, message: str, *, code: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code or type(self).__name__
        self.message = message
        self.status = status or self.status


class ValidationException(AwsError):  # noqa: N818 - AWS's spelling, as for every wire error below
    """The request breaks the model, or names a resource that is not there or in the wrong state."""


class ResourceInUse(AwsError):  # noqa: N818
    """The name is taken."""


class ResourceNotFound(AwsError):  # noqa: N818
    """The resource does not exist."""


class ResourceLimitExceeded(AwsError):  # noqa: N818
    """More of something than AWS allows."""


class AccessDeniedException(AwsError):  # noqa: N818
    """The request comes from where it should not."""

    status = 403


class MissingAuthenticationToken(AwsError):  # noqa: N818
    """The request is not signed."""

    status = 403


class SignatureError(EmulatorError):
    """A request that its signature, or its signer's policies, do not let pass.

    Attributes:
        kind: ``missing``, ``incomplete``, ``unknown_key``, ``bad_token``, ``expired_token``, ``mismatch``, ``skewed``,
            ``expired`` (an address), ``denied``: each service has words of its own for it.
    """

    def __init__(self, kind: str, message: str | None = None) -> None:
        super().__init__(message or kind)
        self.kind = kind
        self.message = message or kind


class UnknownOperationException(AwsError):  # noqa: N818
    """The service has no such operation."""


class SerializationException(AwsError):  # noqa: N818
    """The body is not JSON, or not of the operation's shape."""


class InternalFailure(AwsError):  # noqa: N818
    """The emulator itself failed; the log says where."""

    status = 500


class ObjectStoreError(EmulatorError):
    """S3 could not answer a job."""


class NoSuchBucket(ObjectStoreError):  # noqa: N818
    """The bucket does not exist."""


class NoSuchKey(ObjectStoreError):  # noqa: N818
    """The object does not exist."""


class DamagedObjectError(ObjectStoreError, OSError):
    """The file of an object is missing, or is not what was written; the text says where."""


class TargetError(EmulatorError):
    """A target cannot get an event before somebody changes the target."""


class UnsupportedTargetError(TargetError):
    """The emulator delivers to no target of this kind."""


class TargetInputError(TargetError):
    """The target's InputPath or InputTransformer cannot be used."""


class TargetGoneError(EmulatorError):
    """The target, or what it stands for, does not exist (any more)."""


class EventPatternError(EmulatorError):
    """EventBridge takes no such pattern; the text is its reason."""


class ScheduleError(EmulatorError):
    """A schedule expression is none; the text says why."""


class LogPatternError(EmulatorError):
    """A filter pattern of CloudWatch Logs is none, or is of a kind that is not matched here."""


class InvokeError(EmulatorError):
    """A function was not run."""


class FunctionNotFoundError(InvokeError):
    """No such function, version or alias; the text is the one that Lambda sends."""


class FunctionCodeError(InvokeError):
    """The function has nothing that can be run; the text says what to do."""


class WorkerStartError(InvokeError):
    """No worker could be started for the function."""


class UnsafeZipError(WorkerStartError):
    """The function's zip cannot be unpacked; the text says which entry is wrong and why."""


class UnsupportedRuntimeError(WorkerStartError):
    """The function is written for a language that there is no runtime client for here."""


class TooManyInvocationsError(InvokeError):
    """Every worker is busy and no more may be started."""


class InvokerClosedError(InvokeError):
    """The emulator is shutting down."""


class WorkerFailure(EmulatorError):  # noqa: N818 - a failed invocation, which becomes a payload
    """A worker did not finish its invocation; ``payload`` is what the caller gets, ``log`` what the log says."""

    def __init__(self, payload: dict[str, object], log: str) -> None:
        super().__init__(log)
        self.payload = json.dumps(payload).encode()
        self.log = log


class StartupError(EmulatorError):
    """The emulator cannot start; the message is one line that says what to do."""
