"""Serialisation of moto's backends, with a restricted unpickler.

A pickle names classes and calls them, so reading one takes classes of moto and those of the standard library that hold
data, and nothing else. What cannot be pickled as it is (locks, weak references, functions as factories, private keys,
and backends and buckets, of which there is one each) has a reducer here. They stand in a dispatch table and not in
``reducer_override``: the pickler then calls no Python for the rest, and no other thread changes what it reads.
"""

from __future__ import annotations

import copyreg
import functools
import io
import pickle
import re
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict, deque
from copy import deepcopy
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MethodType, SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from requests.structures import CaseInsensitiveDict

from emulator.moto_services.log_events import reduce_stream

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """The bytes name something that holds no data of moto."""


def service_of(kind: Any) -> str:
    """Return moto's module of the service that a class of backends belongs to, such as ``awslambda``."""
    found: str = _service_of(kind)
    return found


@functools.cache
def _service_of(kind: Any) -> str:
    # A backend that this project derives from moto's stands for the service of its parent.
    parents = (parent.__module__.split(".") for parent in kind.__mro__)
    return str(next(names[1] for names in parents if names[0] == "moto"))


def dump_state(backend: Any) -> bytes:
    """Return everything that ``backend`` holds.

    Raises:
        Exception: something in it cannot be pickled; whatever the pickler raises.
    """
    table = _build_table()
    for left in reversed(range(_ATTEMPTS)):
        target = io.BytesIO()
        pickler = pickle.Pickler(target, protocol=5)
        pickler.dispatch_table = table
        try:
            pickler.dump(vars(backend))
        except RuntimeError as error:
            # A reducer let another thread change a dictionary; that thread's own request keeps it again.
            if isinstance(error, RecursionError) or not left:
                raise
        else:
            return target.getvalue()
    raise AssertionError("unreachable")


def dump_value(value: Any) -> bytes:
    """Return ``value``, which belongs to a backend, as ``dump_state`` would write it."""
    return dump_state(SimpleNamespace(value=value))


def load_value(data: bytes) -> Any:
    """Return what ``dump_value`` wrote; raises as ``load_state`` does."""
    return load_state(data)["value"]


def load_state(data: bytes) -> dict[str, Any]:
    """Return what ``dump_state`` wrote.

    Raises:
        ForbiddenClassError: the bytes name anything but data of moto.
        Exception: they are damaged; whatever the unpickler raises.
    """
    state = _Unpickler(io.BytesIO(data)).load()
    if not isinstance(state, dict):
        raise pickle.UnpicklingError(f"a backend's attributes are a dict, not a {type(state).__name__}")
    return state


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return the class or the maker, if the list above has it or moto does."""
        maker = _MAKERS.get((module, name))
        if maker is not None:
            return maker
        # Only moto's modules are imported for the sake of a name in a file.
        if module.startswith("moto.") or module in _DATA_MODULES:
            found = super().find_class(module, name)
            of_moto = isinstance(found, type) and found.__module__.startswith("moto.")
            if of_moto or any(found is allowed for allowed in _DATA_CLASSES):
                return found
        raise ForbiddenClassError(f"{module}.{name} is no class of moto's data")


class Copies:
    """A factory of copies: stands for the function that a ``defaultdict`` of moto was made with."""

    def __init__(self, sample: Any) -> None:
        self._sample = sample

    def __call__(self) -> Any:
        """Return another one."""
        return deepcopy(self._sample)


def make_lock() -> Any:
    """Return a lock that nobody holds."""
    return threading.Lock()


def make_condition() -> Any:
    """Return a condition that nobody waits for."""
    return threading.Condition()


def make_rlock() -> Any:
    """Return a re-entrant lock that nobody holds."""
    return threading.RLock()


def find_backend(service: str, account_id: str, region: str) -> Any:
    """Return the one backend of a service, an account and a region (or partition)."""
    from moto import backends

    find: Any = backends.get_backend
    return find(service)[account_id][region]


def list_backends_in_use() -> list[Any]:
    """List moto's dictionaries of the backends of a service, of the services that anybody asked for."""
    from moto.core.base_backend import BackendDict

    every: Any = BackendDict
    return list(every._instances)  # noqa: SLF001 -- moto has no other


def find_bucket(name: str, of_stack: dict[str, Any]) -> Any:
    """Return the one bucket of this name, with what a stack calls it; something that has its name where it is gone."""
    from moto.s3.models import s3_backends

    place = s3_backends.bucket_accounts.get(name)
    partition, account_id = place or ("aws", "")
    bucket = s3_backends[account_id][partition].buckets.get(name) if place else None
    if bucket is None:
        return SimpleNamespace(name=name, **of_stack)
    vars(bucket).update(of_stack)
    return bucket


def load_private_key(encoded: bytes) -> Any:
    """Return the private key that ``encoded``, PKCS 8 in DER, is."""
    from cryptography.hazmat.primitives.serialization import load_der_private_key

    return load_der_private_key(encoded, password=None)


def load_web_key(fields: dict[str, Any]) -> Any:
    """Return the key of a user pool that ``fields``, a JSON Web Key, is."""
    from joserfc.jwk import RSAKey

    return RSAKey.import_key(fields)


def bind_method(owner: Any, name: str) -> Any:
    """Return a method of an object of moto."""
    method = getattr(owner, name)
    if not isinstance(method, MethodType) or not type(owner).__module__.startswith("moto."):
        raise ForbiddenClassError(f"{name} is no method of an object of moto")
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
    """List what really implements ``interfaces``: classes that cryptography shows by no name of its own."""
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
    """Return how to make one whose own ``__init__`` takes something else than a factory."""
    state = (vars(found), {"default_factory": found.default_factory})
    return copyreg.__newobj__, (type(found),), state, None, iter(found.items())  # type: ignore[attr-defined]
