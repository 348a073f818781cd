"""Lambda functions in moto's backend, run by the emulator."""

import functools
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from emulator.exceptions import FunctionCodeError, FunctionKeyError, FunctionNotFoundError
from emulator.moto_services.locks import service_lock
from emulator.moto_services.replacements import replaced
from emulator.moto_services.unit_of_work import reading

# Lambda's default for an asynchronous invocation.
DEFAULT_ASYNC_RETRIES = 2


@dataclass(frozen=True, slots=True)
class Function:
    """One version of a function, ready to run.

    Attributes:
        arn: with the version, unless it is ``$LATEST``.
        handler: ``module.function``; None for an image with its own handler.
        timeout_s: whole seconds for one invocation.
        memory_mb: in MiB.
        code_zip: the deployment package; empty for a function with an image.
        code_sha256: changes exactly when the code changes.
        image_uri: the image of a function with PackageType Image, else None.
        layers: the zips of its layers, in the order in which they are unpacked.
        async_retries: how often a failed asynchronous invocation is retried.
        on_success, on_failure: ARNs of the destinations for the result of an asynchronous invocation.
        dead_letter: ARN of the queue or topic for the payloads of failed invocations.
        reserved_concurrency: how many invocations of all versions may run at once; None for no limit of its own. A
            change of it does not outdate a worker.
        invoked_arn: the ARN by which an alias was invoked; empty for no alias.
    """

    arn: str
    account: str
    region: str
    name: str
    version: str
    runtime: str
    handler: str | None
    timeout_s: int
    memory_mb: int
    environment: Mapping[str, str]
    code_zip: bytes = field(repr=False)
    code_sha256: str
    role: str
    image_uri: str | None = None
    layers: tuple[bytes, ...] = field(default=(), repr=False)
    async_retries: int = DEFAULT_ASYNC_RETRIES
    on_success: str | None = None
    on_failure: str | None = None
    dead_letter: str | None = None
    reserved_concurrency: int | None = field(default=None, compare=False)
    invoked_arn: str = field(default="", compare=False)


def get_function(account: str, region: str, name_or_arn: str, qualifier: str | None = None) -> Function:
    """Find a function by name, ``name:qualifier`` or ARN. An ARN's account and region take precedence.

    Raises:
        FunctionNotFoundError: no such function, version or alias.
        FunctionCodeError: its zip is missing or empty, or the key of its environment is not enabled.
    """
    from moto.awslambda.exceptions import UnknownAliasException, UnknownFunctionException

    parts = name_or_arn.split(":")
    if parts[0] == "arn" and len(parts) >= 7:
        region, account = parts[3], parts[4]
    elif len(parts) >= 3:  # Lambda's partial ARN: <account>:function:<name>
        account, name_or_arn = parts[0], ":".join(parts[2:])
    with reading(), service_lock("awslambda"):
        try:
            backend = _backend(account, region)
            found = backend.get_function(name_or_arn, qualifier)
        except (KeyError, ValueError):  # moto has no such region, or a name has too many parts
            raise FunctionNotFoundError(f"Function not found: {name_or_arn}") from None
        except UnknownFunctionException as error:
            raise FunctionNotFoundError(error.message) from None
        try:
            if (alias := _find_alias(backend, found.function_name, name_or_arn, qualifier)) is None:
                return _describe(found, backend)
            version = backend.get_function(found.function_name, _choose_version(alias))
        except (UnknownFunctionException, UnknownAliasException) as error:
            raise FunctionNotFoundError(error.message) from None
        return replace(_describe(version, backend), invoked_arn=alias.arn)


def read_qualifier(name_or_arn: str) -> str | None:
    """Return the version or the alias at the end of a function's name or ARN; None if there is none."""
    parts = name_or_arn.split(":")
    of_name = 7 if parts[0] == "arn" else 1
    return parts[of_name] if len(parts) > of_name else None


def _find_alias(backend: Any, name: str, name_or_arn: str, qualifier: str | None) -> Any:
    """Return the alias that a function was asked for by; None for a version or no qualifier."""
    from moto.awslambda.exceptions import UnknownAliasException

    asked = read_qualifier(name_or_arn) or qualifier
    try:
        return backend.get_alias(asked, name) if asked else None
    except UnknownAliasException:
        return None


def _choose_version(alias: Any) -> str:
    weights: Mapping[str, float] = (alias.routing_config or {}).get("AdditionalVersionWeights") or {}
    rest = max(0.0, 1.0 - sum(weights.values()))
    (version,) = random.choices([*weights, alias.function_version], [*weights.values(), rest])  # noqa: S311
    return str(version)


@contextmanager
def capture_invocations(invoke: Callable[[Function, bytes], object]) -> Iterator[None]:
    """Send invocations from moto's other services to ``invoke``.

    SNS subscriptions, S3 notifications, queues and log subscriptions all call ``LambdaFunction.invoke``, where moto
    would start an image from a registry. ``invoke`` must not block: its caller in moto holds a service's lock.
    """
    from moto.awslambda.models import LambdaFunction

    @functools.wraps(LambdaFunction.invoke)
    def invoke_function(found: Any, body: str | bytes, request_headers: Any, response_headers: Any) -> str:  # noqa: ARG001
        with reading(), service_lock("awslambda"):
            function = _describe(found, _backend(found.account_id, found.region))
        invoke(function, body if isinstance(body, bytes) else (body or "{}").encode())
        return ""

    with replaced(LambdaFunction, invoke=invoke_function), _keeping_configurations(LambdaFunction):
        yield


def _keeping_configurations(function_class: Any) -> AbstractContextManager[None]:
    """Store what moto drops: a function's DeadLetterConfig, which descriptions return, and an update's KMSKeyArn."""
    make, update, describe = (
        vars(function_class)[name] for name in ("__init__", "update_configuration", "get_configuration")
    )

    @functools.wraps(make)
    def make_function(found: Any, account_id: str, spec: dict[str, Any], *rest: Any, **named: Any) -> None:
        make(found, account_id, spec, *rest, **named)
        found.dead_letter_config = spec.get("DeadLetterConfig")

    @functools.wraps(update)
    def update_configuration(found: Any, config_updates: dict[str, Any]) -> Any:
        if "DeadLetterConfig" in config_updates:
            found.dead_letter_config = config_updates["DeadLetterConfig"]
        if "KMSKeyArn" in config_updates:
            found.kms_key_arn = config_updates["KMSKeyArn"] or None
        return update(found, config_updates)

    @functools.wraps(describe)
    def get_configuration(found: Any, *arguments: Any, **named: Any) -> dict[str, Any]:
        config: dict[str, Any] = describe(found, *arguments, **named)
        dead_letter = vars(found).get("dead_letter_config") or {}
        return config | ({"DeadLetterConfig": dead_letter} if dead_letter.get("TargetArn") else {})

    return replaced(
        function_class,
        __init__=make_function,
        update_configuration=update_configuration,
        get_configuration=get_configuration,
    )


def _backend(account: str, region: str) -> Any:
    from moto.awslambda.models import lambda_backends

    return lambda_backends[account][region]


def _describe(found: Any, backend: Any) -> Function:
    code: bytes = getattr(found, "code_bytes", b"") or b""
    image_uri: str | None = found.code.get("ImageUri") if found.package_type == "Image" else None
    if not code and not image_uri:
        raise FunctionCodeError(
            f"The function {found.function_name} has no code: create or update it with a zip file (ZipFile) "
            "or with an S3Bucket and S3Key that exist."
        )
    _check_key(found.kms_key_arn)
    return Function(
        arn=found.function_arn,
        account=found.account_id,
        region=found.region,
        name=found.function_name,
        version=str(found.version),
        runtime=found.run_time or "",
        handler=found.handler,
        timeout_s=int(found.timeout),
        memory_mb=int(found.memory_size),
        environment={str(key): str(value) for key, value in (found.environment_vars or {}).items()},
        code_zip=code,
        code_sha256=found.code_sha_256,
        role=found.role,
        image_uri=image_uri,
        layers=_layers(found, backend),
        reserved_concurrency=_read_reserved_concurrency(found, backend),
        dead_letter=(vars(found).get("dead_letter_config") or {}).get("TargetArn"),
        **_read_invoke_config(found),
    )


def _check_key(arn: str | None) -> None:
    """Refuse a key that is not enabled. A key that KMS does not hold may be one of the script's real account."""
    from moto.kms.models import kms_backends

    parts = (arn or "").split(":")
    if len(parts) != 6:
        return
    with service_lock("kms"):
        try:
            keys = kms_backends[parts[4]][parts[3]].keys
        except KeyError:  # moto has no such region
            return
        key = keys.get(parts[5].removeprefix("key/"))
        if key is not None and (key.key_state != "Enabled" or not key.enabled):
            raise FunctionKeyError(
                "Lambda was unable to decrypt the environment variables because the KMS key used is disabled. Please "
                f"check the function's KMS key settings. KMS key: {arn}"
            )


def _read_reserved_concurrency(found: Any, backend: Any) -> int | None:
    """Read the reserved concurrency of a function; a published version has a copy that later changes do not reach."""
    from moto.awslambda.exceptions import UnknownFunctionException

    try:
        reserved = backend.get_function(found.function_name).reserved_concurrency
    except UnknownFunctionException:  # deleted while it was invoked
        return None
    return None if reserved is None else int(reserved)


def _layers(found: Any, backend: Any) -> tuple[bytes, ...]:
    versions = [backend.layers_versions_by_arn(layer["Arn"]) for layer in found.layers]
    return tuple(version.code_bytes for version in versions if version is not None)


def _read_invoke_config(found: Any) -> dict[str, Any]:
    """Read the function's event invoke configuration; the latest, as moto may store several."""
    config: dict[str, Any] = found.event_invoke_config[-1].config if found.event_invoke_config else {}
    destinations = config.get("DestinationConfig") or {}
    return {
        "async_retries": int(config.get("MaximumRetryAttempts", DEFAULT_ASYNC_RETRIES)),
        "on_success": (destinations.get("OnSuccess") or {}).get("Destination"),
        "on_failure": (destinations.get("OnFailure") or {}).get("Destination"),
    }
