"""Durable moto: changed backends are written before a request's answer.

All backends that a unit of work used are pickled when it ends, and written where that gave something new. Requests that
come at the same time share one writing. What is used outside of any unit, by a thread of moto's own for example, is
written within a second. S3 has a journal of its own, log events a table.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from emulator.moto_services import backend_pickle
from emulator.moto_services.backend_files import BackendFiles, BackendKey, is_backend_key
from emulator.moto_services.log_events import LogEvents
from emulator.moto_services.replacements import replaced
from emulator.moto_services.s3.backend import commit_touched
from emulator.moto_services.unit_of_work import find_used, is_reading, reading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

logger = logging.getLogger(__name__)

# S3 has its journal; the others hold nothing.
_NOT_KEPT = frozenset({"s3", "moto_api", "instance_metadata"})
_STRAY_SECONDS = 1.0


class _Kept:
    """One backend's file, as far as it is written."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0
        self.done = 0
        self.digest = b""


class DurableBackends:
    """What moto's services other than S3 hold in this process, kept in a folder until ``close``."""

    def __init__(
        self,
        folder: Path,
        replacing: Mapping[str, Sequence[Callable[[], AbstractContextManager[None]]]],
        *,
        followed: bool = False,
    ) -> None:
        """Drop what moto holds, make it hold what the folder does, and note from then on which backends are used.

        Args:
            folder: in which it is kept.
            replacing: for each of moto's services what is replaced from its first use until ``close``.
            followed: see ``LogEvents``.

        Raises:
            StartupError: the folder cannot be used.
        """
        from moto.core.base_backend import AccountSpecificBackend, BackendDict
        from moto.core.responses import BaseResponse

        self._files = BackendFiles(folder)
        self._log_events = LogEvents(folder / "log-events.sqlite", followed=followed)
        self._kept: dict[BackendKey, _Kept] = {}
        self._guard = threading.Lock()
        self._reported: set[BackendKey] = set()
        self._stray: dict[BackendKey, Any] = {}
        self._has_stray = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._keep_stray, name="moto-keeper", daemon=True)
        self._is_open = True
        self._replacing = {**replacing, "logs": [self._log_events.kept, *replacing.get("logs", [])]}
        # Restored when they are first used: until then, what they need is not even imported.
        self._waiting: dict[str, list[BackendKey]] = {service: [] for service in self._replacing}
        for key in self._files.list_keys():
            self._waiting.setdefault(key.service, []).append(key)
        self._restored: set[str] = set()
        self._writing = threading.RLock()
        self._restoring = threading.RLock()
        with ExitStack() as closers, reading():
            closers.callback(self._log_events.close)
            _drop_backends()
            closers.callback(_drop_backends)
            for name in ("__getitem__", "items", "values"):
                restore = self._restoring_first(getattr(BackendDict, name))
                closers.enter_context(replaced(BackendDict, name, restore))
                note = self._noting(getattr(AccountSpecificBackend, name))
                closers.enter_context(replaced(AccountSpecificBackend, name, note))
            # Here every request asks IAM whose its access key is, and notes when that was used.
            closers.enter_context(replaced(BaseResponse, "setup_class", _only_reading(BaseResponse.setup_class)))
            self._closers = closers.pop_all()
        self._thread.start()

    def keep(self, used: dict[BackendKey, Any]) -> None:
        """Write the backends that hold something new, and what else was changed in S3; nothing after ``close``.

        Raises:
            OSError: one cannot be written.
        """
        if not self._is_open:
            return
        for key, backend in used.items():
            with self._guard:
                kept = self._kept.setdefault(key, _Kept())
                kept.asked += 1
                mine = kept.asked
            with kept.lock:
                if kept.done < mine:  # else who had the lock before wrote it, too
                    covered = kept.asked
                    self._write(key, backend, kept)
                    kept.done = covered
        commit_touched()  # stacks make buckets, too

    def reset(self) -> None:
        """Empty every backend, but for S3's, and remove its file; no request may run."""
        with self._restoring, reading():
            for key in list(self._files.list_keys()):
                self._files.remove(key)
            self._waiting = {service: [] for service in self._waiting if service in self._replacing}
            for backends in backend_pickle.list_backends_in_use():
                if backend_pickle.service_of(backends.backend) not in _NOT_KEPT:
                    for account in backends.values():
                        account.reset()
            self._log_events.clear()
        with self._guard:
            self._kept.clear()
            # Noted before: written now, a backend without content would count as state.
            self._stray.clear()

    @property
    def is_empty(self) -> bool:
        """Whether no backend is kept but S3's, which is kept elsewhere."""
        return not list(self._files.list_keys())

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
        for replace in self._replacing.get(service, []):
            self._closers.enter_context(replace())
        for key in self._waiting[service]:
            self._restore_backend(key)
        if service == "logs":
            self._log_events.restore()
        del self._waiting[service]

    def _restore_backend(self, key: BackendKey) -> None:
        try:
            content = self._files.read(key)
            state = backend_pickle.load_state(content)
            backend = backend_pickle.find_backend(*key)
        except Exception as error:  # noqa: BLE001 -- whatever a damaged pickle ends in; said by set_aside
            self._files.set_aside(key, error)
            return
        vars(backend).update(state)
        kept = self._kept.setdefault(key, _Kept())
        kept.digest = hashlib.blake2b(content).digest()

    def close(self) -> None:
        """Write what is left to write; afterwards moto is in memory only, and empty."""
        self._closing.set()
        self._has_stray.set()
        self._thread.join()
        self._is_open = False
        with reading():
            self._closers.close()

    def _write(self, key: BackendKey, backend: Any, kept: _Kept) -> None:
        try:
            content = backend_pickle.dump_state(backend)
        except Exception as error:  # noqa: BLE001 -- whatever an object that cannot be pickled raises
            self._report_unkept(key, error)
            return
        digest = hashlib.blake2b(content).digest()
        if digest != kept.digest:
            with self._writing:
                self._files.write(key, content)
            kept.digest = digest

    def _report_unkept(self, key: BackendKey, error: Exception) -> None:
        if key not in self._reported:
            self._reported.add(key)
            logger.warning(
                "What moto holds of %s cannot be kept (%s: %s). It is served until the emulator ends; after a restart "
                "it is as it was kept before, or gone.",
                key,
                type(error).__name__,
                error,
            )

    def _noting(self, find: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``find``, a method of moto's dictionary of an account's backends, which notes what it gives."""

        @functools.wraps(find)
        def find_and_note(account: Any, *region: str) -> Any:
            found = find(account, *region)
            if is_reading():
                return found
            used = find_used(self)
            if backend_pickle.service_of(account.backend) not in _NOT_KEPT:
                for backend in [found] if region else list(dict.values(account)):
                    key = BackendKey(backend_pickle.service_of(type(backend)), backend.account_id, backend.region_name)
                    if is_backend_key(key):
                        self._note(key, backend, used)
            return found

        return find_and_note

    def _note(self, key: BackendKey, backend: Any, used: dict[BackendKey, Any] | None) -> None:
        if used is not None:
            used[key] = backend
        else:
            with self._guard:
                self._stray[key] = backend
            self._has_stray.set()

    def _keep_stray(self) -> None:
        """Write what was asked for outside of any unit of work, until ``close``."""
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
