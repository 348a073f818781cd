"""Every error that leaves the emulator, as AWS spells it.

AwsError                      code, message, HTTP status; encoded in one place (gateway.protocol)
├── ValidationException       a request that breaks the model, an unknown job, a job in the wrong state
├── ResourceInUse             a name that is taken
├── ResourceNotFound          a tag's resource that does not exist
├── ResourceLimitExceeded     more rules, tags or instances than a job may have
├── AccessDeniedException     a Host or Origin that is not ours
├── MissingAuthenticationToken
├── UnknownOperationException
├── SerializationException    a body that is not JSON of the operation's shape
└── InternalFailure
ObjectStoreError              S3 as the jobs see it
├── NoSuchBucket
└── NoSuchKey
StartupError                  the emulator cannot start; its text is the one line the user sees
"""

from __future__ import annotations


class AwsError(Exception):
    """An error on the wire: ``{"__type": code, "message": message}`` with an HTTP status."""

    status = 400

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code or type(self).__name__
        self.message = message


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


class UnknownOperationException(AwsError):  # noqa: N818
    """The service has no such operation."""


class SerializationException(AwsError):  # noqa: N818
    """The body is not JSON, or not of the operation's shape."""


class InternalFailure(AwsError):  # noqa: N818
    """The emulator itself failed; the log says where."""

    status = 500


class ObjectStoreError(Exception):
    """S3 could not answer a job."""


class NoSuchBucket(ObjectStoreError):  # noqa: N818
    """The bucket does not exist."""


class NoSuchKey(ObjectStoreError):  # noqa: N818
    """The object does not exist."""


class StartupError(Exception):
    """The emulator cannot start; the message is one line that says what to do."""
