"""Serialisation of moto's backends, with a restricted unpickler.

A pickle names classes and calls them. So the unpickler accepts only classes of moto, and those of the standard library
that hold data. Objects that cannot be pickled directly have a reducer here: locks, weak references, factory functions,
private keys, and also backends and buckets, which must stay unique. The reducers are in a dispatch table instead of
``reducer_override``. This way, the pickler calls no Python code for other objects, and no other thread can change what
it reads.
"""

import copyreg
import functools
import io
import pickle
import re
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from copy import deepcopy
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MethodType, SimpleNamespace
from typing import Any
from uuid import UUID

from requests.structures import CaseInsensitiveDict

from emulator.moto_services.logs.log_events import reduce_stream

_Lock, _RLock = type(threading.Lock()), type(threading.RLock())
_DATA_CLASSES: frozenset[type] = frozenset(
    {
        bool, bytearray, bytes, complex, dict, float, frozenset, int, list, object, range, set, slice, str, tuple,
        OrderedDict, defaultdict, deque, date, datetime, time, timedelta, timezone,
        CaseInsensitiveDict, Decimal, SimpleNamespace, UUID, weakref.WeakValueDictionary,
    }
)  # fmt: skip
_ATTEMPTS = 20


class ForbiddenClassError(pickle.UnpicklingError):
    """The pickle names something that is not data of moto."""


def _find_service(kind: Any) -> str:
    # A backend that this project derives from moto's belongs to the service of its parent.
    parents = (parent.__module__.split(".") for parent in kind.__mro__)
    return str(next(names[1] for names in parents if names[0] == "moto"))


service_of: Callable[[Any], str] = functools.cache(_find_service)
"""Returns moto's name of the service that a class of backends belongs to, such as ``awslambda``."""


def dump_state(backend: Any) -> bytes:
    """Serialise the state of ``backend``.

    Raises:
        Exception: a part of it cannot be pickled; any error of the pickler.
    """
    table = _build_table()
    for left in reversed(range(_ATTEMPTS)):
        target = io.BytesIO()
        pickler = pickle.Pickler(target, protocol=5)
        pickler.dispatch_table = table
        try:
            pickler.dump(vars(backend))
        except RuntimeError as error:
            # A reducer let another thread change a dictionary. That thread's own request writes the state again.
            if isinstance(error, RecursionError) or not left:
                raise
        else:
            return target.getvalue()
    raise AssertionError("unreachable")


def dump_value(value: Any) -> bytes:
    """Serialise ``value``, which belongs to a backend, as ``dump_state`` does."""
    return dump_state(SimpleNamespace(value=value))


def load_value(data: bytes) -> Any:
    """Return the value from ``dump_value``; raises the errors of ``load_state``."""
    return load_state(data)["value"]


def load_state(data: bytes) -> dict[str, Any]:
    """Return the state from ``dump_state``.

    Raises:
        ForbiddenClassError: the bytes name something that is not data of moto.
        Exception: the bytes are damaged; any error of the unpickler.
    """
    state = _Unpickler(io.BytesIO(data)).load()
    if not isinstance(state, dict):
        raise pickle.UnpicklingError(f"a backend's attributes are a dict, not a {type(state).__name__}")
    return state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return a class or a factory function, if the list above or moto contains it."""
        maker = _MAKERS.get((module, name))
        if maker is not None:
            return maker
        # Only modules of moto are imported because a file names them.
        if module.startswith("moto.") or module in _DATA_MODULES:
            found = super().find_class(module, name)
            of_moto = isinstance(found, type) and found.__module__.startswith("moto.")
            if of_moto or any(found is allowed for allowed in _DATA_CLASSES):
                return found
        raise ForbiddenClassError(f"{module}.{name} is not a class of moto's data")


class Copies:
    """A factory of copies. It replaces the factory function of a ``defaultdict`` in moto."""

    def __init__(self, sample: Any) -> None:
        self._sample = sample

    def __call__(self) -> Any:
        """Return a new copy."""
        return deepcopy(self._sample)


def make_lock() -> Any:
    """Return a new lock, not held."""
    return threading.Lock()


def make_condition() -> Any:
    """Return a new condition, without waiters."""
    return threading.Condition()


def make_rlock() -> Any:
    """Return a new re-entrant lock, not held."""
    return threading.RLock()


def find_backend(service: str, account_id: str, region: str) -> Any:
    """Return the existing backend of a service, an account and a region (or partition)."""
    from moto import backends

    find: Any = backends.get_backend
    return find(service)[account_id][region]


def list_backends_in_use() -> list[Any]:
    """List moto's dictionaries of backends, for the services that were used."""
    from moto.core.base_backend import BackendDict

    every: Any = BackendDict
    return list(every._instances)  # noqa: SLF001 -- moto has no other


def find_bucket(name: str, of_stack: dict[str, Any]) -> Any:
    """Return the existing bucket with this name, updated with the attributes that a stack gives it.

    If the bucket was deleted, return a placeholder with its name.
    """
    from moto.s3.models import s3_backends

    place = s3_backends.bucket_accounts.get(name)
    partition, account_id = place or ("aws", "")
    bucket = s3_backends[account_id][partition].buckets.get(name) if place else None
    if bucket is None:
        return SimpleNamespace(name=name, **of_stack)
    vars(bucket).update(of_stack)
    return bucket


def load_private_key(encoded: bytes) -> Any:
    """Load a private key from PKCS 8 in DER."""
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    return load_der_private_key(encoded, password=None)


def load_web_key(fields: dict[str, Any]) -> Any:
    """Load the key of a user pool from the fields of a JSON Web Key."""
    from joserfc.jwk import RSAKey

    return RSAKey.import_key(fields)


def bind_method(owner: Any, name: str) -> Any:
    """Return a bound method of an object of moto."""
    method = getattr(owner, name)
    if not isinstance(method, MethodType) or not type(owner).__module__.startswith("moto."):
        raise ForbiddenClassError(f"{name} is not a method of an object of moto")
    return method


_MAKERS = {
    (maker.__module__, maker.__name__): maker
    for maker in (
        Copies,
        make_condition,
        make_lock,
        make_rlock,
        find_backend,
        find_bucket,
        load_private_key,
        load_web_key,
        bind_method,
    )
} | {("re", "_compile"): re.compile}
_DATA_MODULES = frozenset(kind.__module__ for kind in _DATA_CLASSES)


def _build_table() -> dict[type, Callable[[Any], Any]]:
    table: dict[type, Callable[[Any], Any]] = {
        **copyreg.dispatch_table,
        _Lock: lambda _lock: (make_lock, ()),
        _RLock: lambda _lock: (make_rlock, ()),
        threading.Condition: lambda _condition: (make_condition, ()),
        MethodType: lambda method: (bind_method, (method.__self__, method.__name__)),
        defaultdict: _reduce_defaultdict,
        weakref.WeakValueDictionary: lambda found: (weakref.WeakValueDictionary, (), None, None, iter(found.items())),
    }
    for derived in defaultdict.__subclasses__():
        table[derived] = _reduce_derived_defaultdict
    for backends in list_backends_in_use():
        table[backends.backend] = _reduce_backend
    if "moto.s3.models" in sys.modules:
        from moto.s3.models import FakeBucket

        table[FakeBucket] = _reduce_bucket
    if "moto.logs.models" in sys.modules:
        from moto.logs.models import LogStream

        table[LogStream] = reduce_stream
    if "moto.kms.utils" in sys.modules:
        from cryptography.hazmat.primitives.asymmetric import ec, rsa

        for key in _find_key_classes(rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey):
            table[key] = _reduce_private_key
    if "joserfc.jwk" in sys.modules:
        from joserfc.jwk import RSAKey

        table[RSAKey] = lambda key: (load_web_key, (key.as_dict(private=True),))
    return table


def _find_key_classes(*interfaces: Any) -> list[type]:
    """List the classes that implement ``interfaces``; cryptography does not export them."""
    from cryptography.hazmat.bindings._rust import openssl

    modules = (openssl.rsa, openssl.ec)
    return [
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, type) and issubclass(found, interfaces)
    ]


def _reduce_backend(backend: Any) -> tuple[Any, ...]:
    return find_backend, (service_of(type(backend)), backend.account_id, backend.region_name)


def _reduce_bucket(bucket: Any) -> tuple[Any, ...]:
    names = ("type", "logical_resource_id")
    return find_bucket, (bucket.name, {name: vars(bucket)[name] for name in names if name in vars(bucket)})


def _reduce_private_key(key: Any) -> tuple[Any, ...]:
    from cryptography.hazmat.primitives import serialization as form

    encoded = key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption())
    return load_private_key, (encoded,)


def _reduce_defaultdict(found: defaultdict[Any, Any]) -> tuple[Any, ...]:
    factory: Any = found.default_factory
    if not (factory is None or isinstance(factory, (type, Copies))):
        factory = Copies(factory())
    return defaultdict, (factory,), None, None, iter(found.items())


def _reduce_derived_defaultdict(found: defaultdict[Any, Any]) -> tuple[Any, ...]:
    """Reduce a ``defaultdict`` whose own ``__init__`` does not take a factory."""
    state = (vars(found), {"default_factory": found.default_factory})
    return copyreg.__newobj__, (type(found),), state, None, iter(found.items())  # type: ignore[attr-defined]
