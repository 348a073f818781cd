"""Shared errors of the emulator: each says the problem, where, and the remedy.

EmulatorError
├── AwsError                      code, message, HTTP status; sent by the gateway or by Lambda's Invoke
│   ├── ValidationException       a request that violates the model, an unknown job, a job in the wrong state
│   ├── ResourceInUse             a name that is in use
│   ├── ResourceNotFound          a tag's resource that does not exist
│   ├── ConflictException         a pipeline's execution or step in the wrong state
│   ├── ResourceLimitExceeded     more rules, tags or instances than a job may have
│   ├── AccessDeniedException     a foreign Host, Origin or site, or a closed path
│   ├── MissingAuthenticationToken
│   ├── UnknownOperationException
│   ├── SerializationException    a body that is not JSON of the operation's shape
│   └── InternalFailure
├── SignatureError                a refused signature or permission; each service words it differently
├── ObjectStoreError              S3, as jobs use it
│   ├── NoSuchBucket
│   ├── NoSuchKey
│   └── DamagedObjectError        an object whose file differs from what was written
├── TargetError                   an event that cannot be delivered to a target, however often it is retried
│   ├── UnsupportedTargetError
│   └── TargetInputError
├── TargetGoneError               a target that does not exist at the moment
├── EventPatternError             an event pattern that EventBridge refuses, with its reason
├── ScheduleError                 an invalid schedule expression
├── LogPatternError               a CloudWatch Logs filter pattern that cannot be matched
├── InvokeError                   a function that was not run
│   ├── FunctionNotFoundError
│   ├── FunctionCodeError
│   ├── WorkerStartError          no worker could be started
│   │   ├── UnsafeZipError
│   │   └── UnsupportedRuntimeError
│   ├── TooManyInvocationsError
│   └── InvokerClosedError
├── WorkerFailure                 a function that ran and did not answer; the caller gets its payload
└── StartupError                  the emulator cannot start; its text is the one line the user sees
"""

import json


class EmulatorError(Exception):
    """An error that the emulator expects and reports with a message."""


class AwsError(EmulatorError):
    """An error sent to the client: a code, a message and an HTTP status, in the protocol of the request."""

    status = 400

    def __init__(self, message: str, *, code: str | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code or type(self).__name__
        self.message = message
        self.status = status or self.status


class ValidationException(AwsError):  # noqa: N818 - AWS's spelling, as for every wire error below
    """The request violates the model, or names a resource that does not exist or is in the wrong state."""


class ResourceInUse(AwsError):  # noqa: N818
    """The name is in use."""


class ResourceNotFound(AwsError):  # noqa: N818
    """The resource does not exist."""


class ConflictException(AwsError):  # noqa: N818
    """The resource is in a state in which the request cannot be served."""


class ResourceLimitExceeded(AwsError):  # noqa: N818
    """The request exceeds one of AWS's limits."""


class AccessDeniedException(AwsError):  # noqa: N818
    """The request comes from a source that is not allowed."""

    status = 403


class MissingAuthenticationToken(AwsError):  # noqa: N818
    """The request is not signed."""

    status = 403


class SignatureError(EmulatorError):
    """A request is refused because of its signature or its signer's policies.

    Attributes:
        kind: ``missing``, ``incomplete``, ``unknown_key``, ``bad_token``, ``expired_token``, ``mismatch``, ``skewed``,
            ``expired`` (a presigned address) or ``denied``; each service words it differently.
    """

    def __init__(self, kind: str, message: str | None = None) -> None:
        super().__init__(message or kind)
        self.kind = kind
        self.message = message or kind


class UnknownOperationException(AwsError):  # noqa: N818
    """The service does not have the operation."""


class SerializationException(AwsError):  # noqa: N818
    """The body is not JSON, or does not have the operation's shape."""


class InternalFailure(AwsError):  # noqa: N818
    """The emulator itself failed; its log has the traceback."""

    status = 500


class ObjectStoreError(EmulatorError):
    """S3 could not answer a job's request."""


class NoSuchBucket(ObjectStoreError):  # noqa: N818
    """The bucket does not exist."""


class NoSuchKey(ObjectStoreError):  # noqa: N818
    """The object does not exist."""


class DamagedObjectError(ObjectStoreError, OSError):
    """The file of an object is missing, or differs from what was written; the text says where."""


class TargetError(EmulatorError):
    """An event cannot be delivered to a target until somebody changes the target."""


class UnsupportedTargetError(TargetError):
    """The emulator does not deliver to targets of this kind."""


class TargetInputError(TargetError):
    """The target's InputPath or InputTransformer cannot be used."""


class TargetGoneError(EmulatorError):
    """The target, or the resource that it names, does not exist, or no longer exists."""


class EventPatternError(EmulatorError):
    """EventBridge refuses the event pattern; the text is its reason."""


class ScheduleError(EmulatorError):
    """A schedule expression is invalid; the text says why."""


class LogPatternError(EmulatorError):
    """A CloudWatch Logs filter pattern is invalid, or of a kind that the emulator does not match."""


class InvokeError(EmulatorError):
    """A function could not be run."""


class FunctionNotFoundError(InvokeError):
    """The function, version or alias does not exist; the text is the one that Lambda sends."""


class FunctionCodeError(InvokeError):
    """The function has no code that can run; the text says what to do."""


class FunctionKeyError(FunctionCodeError):
    """The environment of the function cannot be decrypted: its key in KMS is not enabled."""


class WorkerStartError(InvokeError):
    """No worker could be started for the function."""


class UnsafeZipError(WorkerStartError):
    """The function's zip cannot be unpacked; the text says which entry is wrong and why."""


class UnsupportedRuntimeError(WorkerStartError):
    """The function's runtime is for a language for which the emulator has no runtime client."""


class TooManyInvocationsError(InvokeError):
    """Every worker is busy, and the limit on workers is reached."""


class InvokerClosedError(InvokeError):
    """The emulator is shutting down."""


class WorkerFailure(EmulatorError):  # noqa: N818 - a failed invocation, which becomes a payload
    """A worker did not finish its invocation; ``payload`` is for the caller, ``log`` for the log."""

    def __init__(self, payload: dict[str, object], log: str) -> None:
        super().__init__(log)
        self.payload = json.dumps(payload).encode()
        self.log = log


class StartupError(EmulatorError):
    """The emulator cannot start; the message is one line that says what to do."""
