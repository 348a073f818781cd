"""KMS keys named by ARN or alias where moto takes an ID alone."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from emulator.moto_services.replacements import replaced

_METHODS = ("disable_key", "enable_key", "cancel_key_deletion", "schedule_key_deletion")


def finding_keys_by_arn() -> AbstractContextManager[None]:
    """Find the key of each operation by its ARN, too."""
    from moto.kms.models import KmsBackend

    return replaced(KmsBackend, **{name: _find_first(getattr(KmsBackend, name)) for name in _METHODS})


def _find_first(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def find_and_call(backend: Any, key_id: str, *arguments: Any, **named: Any) -> Any:
        return method(backend, backend.any_id_to_key_id(key_id), *arguments, **named)

    return find_and_call
