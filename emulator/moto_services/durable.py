"""Durable moto: changed backends are written before a request's answer.

When a unit of work ends, all backends that it used are pickled, and those that changed are written. Simultaneous
requests share one write. Backends that are used outside of a unit, for example by moto's own threads, are written
within a second. S3 has its own journal, and log events have a table.
"""

import functools
import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from emulator.moto_services import backend_pickle
from emulator.moto_services.backend_files import BackendFiles, BackendKey, is_backend_key
from emulator.moto_services.logs.log_events import LogEvents
from emulator.moto_services.replacements import replaced
from emulator.moto_services.s3.backend import commit_touched
from emulator.moto_services.unit_of_work import find_used, is_reading, reading

logger = logging.getLogger(__name__)

# S3 has its journal; the others have no state.
_NOT_KEPT = frozenset({"s3", "moto_api", "instance_metadata"})
_STRAY_SECONDS = 1.0


class _Kept:
    """Tracks how far one backend's file is written."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked = 0
        self.done = 0
        self.digest = b""


class DurableBackends:
    """The backends of moto's services except S3, which are kept in a folder until ``close``."""

    def __init__(
        self,
        folder: Path,
        replacing: Mapping[str, Sequence[Callable[[], AbstractContextManager[None]]]],
        *,
        followed: bool = False,
    ) -> None:
        """Replace the backends in memory by those of the folder, and track which backends are used from then on.

        Args:
            folder: where the backends are stored.
            replacing: for each of moto's services, the replacements between its first use and ``close``.
            followed: see ``LogEvents``.

        Raises:
            StartupError: the folder cannot be used.
        """
        from moto.core import utils
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
        self._replacing = {service: list(replacements) for service, replacements in replacing.items()}
        self._replacing.setdefault("logs", []).insert(0, self._log_events.kept)
        # A service is restored when it is first used. Before that, its modules are not even imported.
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
            for owner, wrap in ((BackendDict, self._restoring_first), (AccountSpecificBackend, self._noting)):
                wrapped = {name: wrap(getattr(owner, name)) for name in ("__getitem__", "items", "values")}
                closers.enter_context(replaced(owner, **wrapped))
            shared = functools.cache(vars(utils)["create_loader"])
            closers.enter_context(replaced(utils, create_loader=shared))
            # Every request asks IAM who owns its access key, and IAM records that use.
            closers.enter_context(replaced(BaseResponse, setup_class=reading()(BaseResponse.setup_class)))
            self._closers = closers.pop_all()
        self._thread.start()

    def keep(self, used: dict[BackendKey, Any]) -> None:
        """Write the backends that changed, and pending changes in S3. After ``close``, do nothing.

        Raises:
            OSError: a backend cannot be written.
        """
        if not self._is_open:
            return
        for key, backend in used.items():
            with self._guard:
                kept = self._kept.setdefault(key, _Kept())
                kept.asked += 1
                mine = kept.asked
            with kept.lock:
                if kept.done < mine:  # otherwise the previous holder of the lock wrote this change too
                    covered = kept.asked
                    self._write(key, backend, kept)
                    kept.done = covered
        commit_touched()  # CloudFormation stacks can create buckets

    def reset(self) -> None:
        """Empty every backend except S3's, and remove its file. No request may be running."""
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
        """Whether no backend is stored. S3 does not count: it is stored elsewhere."""
        return not list(self._files.list_keys())

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Prevent changes to the files inside the ``with`` block."""
        with self._writing:
            yield

    @contextmanager
    def replacing_in(self, service: str, replace: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        """Replace more of a service inside the ``with`` block, but not before its first use, which imports it."""
        with ExitStack() as closers:

            def replace_until_closed() -> AbstractContextManager[None]:
                closers.enter_context(replace())
                return nullcontext()

            with self._restoring:
                if service in self._restored:
                    replace_until_closed()
                else:
                    self._replacing.setdefault(service, []).append(replace_until_closed)
                    self._waiting.setdefault(service, [])
            try:
                yield
            finally:
                with self._restoring:
                    if replace_until_closed in self._replacing.get(service, ()):
                        self._replacing[service].remove(replace_until_closed)

    def _restoring_first(self, use: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``use``, a method of moto's dictionary of a service's backends, to restore the service first."""

        @functools.wraps(use)
        def restore_and_use(backends: Any, *rest: Any) -> Any:
            service = backend_pickle.service_of(backends.backend)
            if service in self._waiting:
                with self._restoring, reading():
                    self._restore(service)
            return use(backends, *rest)

        return restore_and_use

    def _restore(self, service: str) -> None:
        """Restore one service from the folder. Damaged files are logged, moved aside, and left out."""
        if service not in self._waiting or service in self._restored:
            return  # another thread restored it, or its own restoration asks for a backend
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
        """Write pending changes. Afterwards, moto is empty and in memory only."""
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
        """Wrap ``find``, a method of moto's dictionary of an account's backends, to record the backends it returns."""

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
        """Write backends that were used outside of a unit of work, until ``close``."""
        while self._has_stray.wait():
            self._closing.wait(_STRAY_SECONDS)
            self._has_stray.clear()
            # Asked after the other event was cleared: whoever closes may have set both just before.
            closing = self._closing.is_set()
            with self._guard:
                stray, self._stray = self._stray, {}
            try:
                self.keep(stray)
            except OSError:
                logger.exception("What moto's own threads changed could not be written.")
            if closing:
                return


def _drop_backends() -> None:
    for backends in backend_pickle.list_backends_in_use():
        if backend_pickle.service_of(backends.backend) not in _NOT_KEPT:
            for account in backends.values():
                account.reset()
            backends.clear()
