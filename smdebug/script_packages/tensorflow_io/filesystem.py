"""The file system for s3:// that TensorFlow calls."""

import atexit
import ctypes
import functools
import itertools
import os
import platform
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import objects
from .interface import (
    FilesystemOperations,
    ReadableFileOperations,
    Statistics,
    WritableFileOperations,
    allocate,
    allocate_names,
    register,
)

_OK, _NOT_FOUND, _FAILED_PRECONDITION, _OUT_OF_RANGE, _INTERNAL = 0, 5, 9, 11, 13


def register_s3() -> None:
    """Register the file system, unless this TensorFlow has one for s3://.

    Raises:
        ImportError: this TensorFlow has no such interface, or ctypes cannot call it on this processor.
    """
    import tensorflow as tf

    if "s3" in tf.io.gfile.get_registered_schemes():
        return
    library = Path(tf.__file__).with_name("libtensorflow_cc.so.2")
    if platform.machine() == "x86_64" and library.is_file():
        S3Filesystem(objects.connect).register(ctypes.CDLL(str(library)))
    if "s3" not in tf.io.gfile.get_registered_schemes():
        raise ImportError(
            f"TensorFlow {tf.__version__} on {platform.machine()} takes no file system for s3:// from this package: "
            "save to the folder in SM_MODEL_DIR, which is uploaded, or ask for TensorFlow 2.15 or 2.12."
        )


class _FailureError(Exception):
    """What a function tells TensorFlow by its status."""

    def __init__(self, code: int, text: str, result: object = None) -> None:
        super().__init__(text)
        self.code = code
        self.result = result


class S3Filesystem:
    """Functions that TensorFlow calls, from any of its threads."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        # A forked process needs connections of its own.
        self._connect_of = functools.cache(lambda _pid: connect())
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._files: dict[int, Any] = {}
        self._library: Any = None
        self._structures: tuple[Any, ...] = ()

    def register(self, library: Any) -> None:
        """Register this file system with the TensorFlow of a library."""
        self._library = library
        library.TF_SetStatus.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p]
        library.TF_SetStatus.restype = None
        self._structures = (
            self._fill(FilesystemOperations, "_"),
            self._fill(ReadableFileOperations, "_file_"),
            self._fill(WritableFileOperations, "_file_"),
        )
        register(library, "s3", *self._structures)
        # TensorFlow calls them as long as the process lives, also while Python's modules are cleared.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        atexit.register(self._store_open_files)

    def _store_open_files(self) -> None:
        """Store what scripts leave open: TensorFlow closes it when Python cannot be called any more."""
        for file in list(self._files.values()):
            if isinstance(file, objects.WritableFile):
                file.store()

    def _connect(self) -> Any:
        return self._connect_of(os.getpid())

    def _fill(self, structure: Any, prefix: str) -> Any:
        """Return a structure with a callback for each of its functions that this class has as a method."""
        found = structure()
        for name, kind, *_ in structure._fields_:
            method = getattr(self, prefix + name, None)
            if method is not None:
                setattr(found, name, kind(self._guard(method, kind)))
        return found

    def _guard(self, method: Callable[..., Any], kind: Any) -> Callable[..., Any]:
        """Wrap a function to tell its errors by the status, the last argument of those that have one.

        TensorFlow raises what the status says; an exception of Python's would be lost on the way.
        """
        default = None if kind._restype_ is None else kind._restype_().value
        is_over = sys.is_finalizing
        has_status = not method.__name__.endswith(("cleanup", "translate_name"))

        @functools.wraps(method)
        def call(*arguments: Any) -> Any:
            if is_over():
                return default
            if not has_status:
                return method(*arguments)
            *given, status = (each.decode() if isinstance(each, bytes) else each for each in arguments)
            code, text, result = _OK, "", default
            try:
                result = method(*given)
            except FileNotFoundError as error:
                code, text = _NOT_FOUND, str(error)
            except _FailureError as failure:
                code, text = failure.code, str(failure)
                result = default if failure.result is None else failure.result
            except OSError as error:
                code, text = _FAILED_PRECONDITION, str(error)
            except Exception as error:  # noqa: BLE001 - TensorFlow raises it from the status
                code, text = _INTERNAL, f"{type(error).__name__}: {error}"
            self._library.TF_SetStatus(status, code, text.encode())
            return result

        return call

    # Of the file system.

    def _init(self, _filesystem: Any) -> None:
        """Do nothing: there is nothing to prepare."""

    def _cleanup(self, _filesystem: Any) -> None:
        """Do nothing: it lives as long as the process."""

    def _translate_name(self, _filesystem: Any, path: bytes) -> int:
        """Return a path as it is: TensorFlow would make one slash of two."""
        return allocate(path + b"\0")

    def _new_random_access_file(self, _filesystem: Any, path: str, file: Any) -> None:
        self._keep(file, objects.ReadableFile(self._connect(), path))

    def _new_writable_file(self, _filesystem: Any, path: str, file: Any) -> None:
        self._keep(file, objects.WritableFile(self._connect(), path, append=False))

    def _new_appendable_file(self, _filesystem: Any, path: str, file: Any) -> None:
        self._keep(file, objects.WritableFile(self._connect(), path, append=True))

    def _create_dir(self, _filesystem: Any, path: str) -> None:
        objects.make_folder(self._connect(), path)

    _recursively_create_dir = _create_dir

    def _delete_file(self, _filesystem: Any, path: str) -> None:
        objects.remove(self._connect(), path)

    def _delete_dir(self, _filesystem: Any, path: str) -> None:
        objects.remove_folder(self._connect(), path, with_content=False)

    def _delete_recursively(self, _filesystem: Any, path: str, files: Any, folders: Any) -> None:
        files[0] = folders[0] = 0
        objects.remove_folder(self._connect(), path, with_content=True)

    def _rename_file(self, _filesystem: Any, source: str, target: str) -> None:
        objects.move(self._connect(), source, target)

    def _copy_file(self, _filesystem: Any, source: str, target: str) -> None:
        objects.copy(self._connect(), source, target)

    def _path_exists(self, _filesystem: Any, path: str) -> None:
        self._get_kind(path)

    def _stat(self, _filesystem: Any, path: str, found: Any) -> None:
        is_file = self._get_kind(path) == "file"
        length, changed = objects.describe(self._connect(), path) if is_file else (0, 0)
        found[0] = Statistics(length, changed, not is_file)

    def _is_directory(self, _filesystem: Any, path: str) -> bool:
        if self._get_kind(path) == "file":
            raise _FailureError(_FAILED_PRECONDITION, f"{path} is not a folder.")
        return True

    def _get_file_size(self, _filesystem: Any, path: str) -> int:
        return objects.measure(self._connect(), path)

    def _get_children(self, _filesystem: Any, path: str, entries: Any) -> int:
        if self._get_kind(path) == "file":
            raise _FailureError(_FAILED_PRECONDITION, f"{path} is not a folder.")
        names = objects.list_children(self._connect(), path)
        entries[0] = allocate_names(names)
        return len(names)

    def _get_kind(self, path: str) -> str:
        kind = objects.kind_of(self._connect(), path)
        if not kind:
            raise FileNotFoundError(f"There is no {path}.")
        return kind

    # Of its files.

    def _keep(self, holder: Any, file: Any) -> None:
        with self._lock:
            number = next(self._numbers)
            self._files[number] = file
        holder[0].number = number

    def _find(self, holder: Any) -> Any:
        return self._files[holder[0].number]

    def _file_cleanup(self, holder: Any) -> None:
        file = self._files.pop(holder[0].number, None)
        if isinstance(file, objects.WritableFile):
            file.drop()

    def _file_read(self, holder: Any, offset: int, size: int, buffer: int) -> int:
        content = self._find(holder).read(offset, size)
        ctypes.memmove(buffer, content, len(content))
        if len(content) < size:
            raise _FailureError(_OUT_OF_RANGE, "The end of the file.", len(content))
        return len(content)

    def _file_append(self, holder: Any, buffer: int, size: int) -> None:
        self._find(holder).append(ctypes.string_at(buffer, size))

    def _file_tell(self, holder: Any) -> int:
        return int(self._find(holder).tell())

    def _file_flush(self, holder: Any) -> None:
        self._find(holder).store()

    _file_sync = _file_flush

    def _file_close(self, holder: Any) -> None:
        self._find(holder).close()
