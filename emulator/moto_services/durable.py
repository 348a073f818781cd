"""moto made durable: the backends that a request changed are written before its answer goes out.

moto's backends are plain objects, so what a request changed is not known; which backends it asked for is. All of those
are pickled when it ends (``keeping``), and written where that gave something new. Requests that come at the same time
share one writing. What only reads says so (``reading``) and costs nothing; what does neither, such as a thread of
moto's own, is written within a second. S3 has a journal of its own, log events a table.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from emulator.moto_services import backend_pickle
from emulator.moto_services.backend_files import BackendFiles, Place, is_place
from emulator.moto_services.log_events import LogEvents
from emulator.moto_services.s3.backend import commit_touched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

logger = logging.getLogger(__name__)

# S3 has its journal; the others hold nothing.
_NOT_KEPT = frozenset({"s3", "moto_api", "instance_metadata"})
_STRAY_SECONDS = 1.0


class _Scope(threading.local):
    """The backends that this thread asked for since its innermost ``keeping`` began; None outside of any."""

    touched: dict[Place, Any] | None = None
    reads: bool = False


_scope = _Scope()
_active: DurableMoto | None = None


@contextmanager
def keeping() -> Iterator[None]:
    """Write what this thread changes in moto meanwhile, before it goes on.

    Raises:
        OSError: the disk is full, say. What was changed is served, and written with the next change.
    """
    outer, _scope.touched = _scope.touched, {}
    reads, _scope.reads = _scope.reads, False
    try:
        yield
    finally:
        touched, _scope.touched = _scope.touched, outer
        _scope.reads = reads
        if _active is not None:
            _active.keep(touched or {})
            commit_touched()  # stacks make buckets, too


@contextmanager
def reading() -> Iterator[None]:
    """Say that this thread changes nothing in moto meanwhile that has to be kept."""
    reads, _scope.reads = _scope.reads, True
    try:
        yield
    finally:
        _scope.reads = reads


class _Kept:
    """One backend's file, as far as it is written."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0
        self.done = 0
        self.digest = b""


class DurableMoto:
    """What moto holds in this process, kept in a folder from ``open_moto`` until ``close``."""

    def __init__(self, folder: Path, *, followed: bool = False) -> None:
        """Drop what moto holds, make it hold what the folder does, and watch from then on who asks for it.

        Args:
            folder: in which it is kept.
            followed: see ``LogEvents``.

        Raises:
            StartupError: the folder cannot be used.
        """
        from moto.core.base_backend import AccountSpecificBackend, BackendDict
        from moto.core.responses import BaseResponse

        self._files = BackendFiles(folder)
        self._log_events = LogEvents(folder / "log-events.sqlite", followed=followed)
        self._kept: dict[Place, _Kept] = {}
        self._guard = threading.Lock()
        self._reported: set[Place] = set()
        self._stray: dict[Place, Any] = {}
        self._has_stray = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_stray, name="moto-keeper", daemon=True)
        # Restored when they are first asked for: until then, what they need is not even imported.
        self._waiting: dict[str, list[Place]] = {"logs": []}
        for place in self._files.list_places():
            self._waiting.setdefault(place.service, []).append(place)
        self._restored: set[str] = set()
        self._writing = threading.RLock()
        self._restoring = threading.RLock()
        with ExitStack() as closers:
            closers.callback(self._log_events.close)
            _drop_backends()
            closers.callback(_drop_backends)
            for name in ("__getitem__", "items", "values"):
                closers.enter_context(_wrapped(BackendDict, name, self._restoring_first))
                closers.enter_context(_wrapped(AccountSpecificBackend, name, self._noting))
            # Here every request asks IAM whose its access key is, and notes when that was used.
            closers.enter_context(_wrapped(BaseResponse, "setup_class", _only_reading))
            self._closers = closers.pop_all()
        self._thread.start()

    def keep(self, touched: dict[Place, Any]) -> None:
        """Write the backends that hold something new.

        Raises:
            OSError: one cannot be written.
        """
        for place, backend in touched.items():
            with self._guard:
                kept = self._kept.setdefault(place, _Kept())
                kept.asked += 1
                mine = kept.asked
            with kept.lock:
                if kept.done < mine:  # else who had the lock before wrote it, too
                    covered = kept.asked
                    self._write(place, backend, kept)
                    kept.done = covered

    def reset(self) -> None:
        """Empty every backend, but for S3's, and remove its file; no request may run."""
        with self._restoring, reading():
            self._restore("logs")
            for place in list(self._files.list_places()):
                self._files.remove(place)
            self._waiting.clear()
            for backends in backend_pickle.list_backends_in_use():
                if backend_pickle.service_of(backends.backend) not in _NOT_KEPT:
                    for account in backends.values():
                        account.reset()
            self._log_events.clear()
        with self._guard:
            self._kept.clear()

    @property
    def is_empty(self) -> bool:
        """Whether no backend is kept but S3's, which is kept elsewhere."""
        return not list(self._files.list_places())

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Let no file change meanwhile."""
        with self._writing:
            yield

    def _restoring_first(self, use: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``use``, a method of moto's dictionary of a service's backends, after the service is restored."""

        @functools.wraps(use)
        def restore_and_use(backends: Any, *rest: Any) -> Any:
            service = backend_pickle.service_of(backends.backend)
            if service in self._waiting:
                with self._restoring, reading():
                    self._restore(service)
            return use(backends, *rest)

        return restore_and_use

    def _restore(self, service: str) -> None:
        """Make what the folder holds of one service; what is damaged is said, set aside, and left out."""
        if service not in self._waiting or service in self._restored:
            return  # another thread was first, or this one asks for a backend in order to restore it
        self._restored.add(service)
        for place in self._waiting[service]:
            self._restore_backend(place)
        if service == "logs":
            self._closers.enter_context(self._log_events.kept())
            self._log_events.restore()
        del self._waiting[service]

    def _restore_backend(self, place: Place) -> None:
        try:
            content = self._files.read(place)
            state = backend_pickle.load_state(content)
            backend = backend_pickle.find_backend(*place)
        except Exception as error:  # noqa: BLE001 -- whatever a damaged pickle ends in; said by set_aside
            self._files.set_aside(place, error)
            return
        vars(backend).update(state)
        kept = self._kept.setdefault(place, _Kept())
        kept.digest = hashlib.blake2b(content).digest()

    def close(self) -> None:
        """Write what is left to write; afterwards moto is in memory only, and empty."""
        global _active
        self._closing.set()
        self._has_stray.set()
        self._thread.join()
        with reading():
            _active = None
            self._closers.close()

    def _write(self, place: Place, backend: Any, kept: _Kept) -> None:
        try:
            content = backend_pickle.dump_state(backend)
        except Exception as error:  # noqa: BLE001 -- whatever an object that cannot be pickled raises
            self._report_unkept(place, error)
            return
        digest = hashlib.blake2b(content).digest()
        if digest != kept.digest:
            with self._writing:
                self._files.write(place, content)
            kept.digest = digest

    def _report_unkept(self, place: Place, error: Exception) -> None:
        if place not in self._reported:
            self._reported.add(place)
            logger.warning(
                "What moto holds of %s cannot be kept (%s: %s). It is served until the emulator ends; after a restart "
                "it is as it was kept before, or gone.",
                place,
                type(error).__name__,
                error,
            )

    def _noting(self, find: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``find``, a method of moto's dictionary of an account's backends, which notes what it gives."""

        @functools.wraps(find)
        def find_and_note(account: Any, *region: str) -> Any:
            found = find(account, *region)
            if not _scope.reads and backend_pickle.service_of(account.backend) not in _NOT_KEPT:
                for backend in [found] if region else list(dict.values(account)):
                    place = Place(backend_pickle.service_of(type(backend)), backend.account_id, backend.region_name)
                    self._note(place, backend)
            return found

        return find_and_note

    def _note(self, place: Place, backend: Any) -> None:
        if not is_place(place):
            return
        if _scope.touched is not None:
            _scope.touched[place] = backend
        else:
            with self._guard:
                self._stray[place] = backend
            self._has_stray.set()

    def _keep_stray(self) -> None:
        """Write what was asked for outside of any ``keeping``, until ``close``."""
        while self._has_stray.wait():
            closing = self._closing.wait(_STRAY_SECONDS)
            self._has_stray.clear()
            with self._guard:
                stray, self._stray = self._stray, {}
            try:
                self.keep(stray)
            except OSError:
                logger.exception("What moto's own threads changed could not be written.")
            if closing:
                return


@contextmanager
def _wrapped(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """Let a class of moto have a method, its parent's included, as ``wrap`` returns it."""
    own = vars(owner).get(name)
    setattr(owner, name, wrap(own or getattr(owner, name)))
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def _only_reading(ask: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(ask)
    def ask_only(*args: Any, **kwargs: Any) -> Any:
        with reading():
            return ask(*args, **kwargs)

    return ask_only


def _drop_backends() -> None:
    for backends in backend_pickle.list_backends_in_use():
        if backend_pickle.service_of(backends.backend) not in _NOT_KEPT:
            for account in backends.values():
                account.reset()
            backends.clear()


def open_moto(folder: Path, *, followed: bool = False) -> DurableMoto:
    """Make moto durable in ``folder`` and restore what it holds; S3 is opened before it.

    There is one moto in a process. What was in it before is dropped.

    Args:
        folder: in which it is kept.
        followed: see ``LogEvents``.

    Raises:
        StartupError: the folder cannot be used.
    """
    global _active
    with reading():
        _active = DurableMoto(folder, followed=followed)
    return _active
