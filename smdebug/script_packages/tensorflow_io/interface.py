"""TensorFlow's C interface of file systems, of which ctypes makes the callbacks."""

import ctypes
from ctypes import CFUNCTYPE, POINTER, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

# As in tensorflow/c/experimental/filesystem/filesystem_interface.h, which calls both versions 0.
VERSION = 0


class Holder(ctypes.Structure):
    """What TensorFlow keeps for a plugin's file or file system: the number by which the plugin knows it."""

    _fields_ = (("number", c_void_p),)


class Statistics(ctypes.Structure):
    """TF_FileStatistics."""

    _fields_ = (("length", c_int64), ("changed_ns", c_int64), ("is_directory", c_bool))


_HELD, _STATUS, _PATH = POINTER(Holder), c_void_p, c_char_p
# Lists of names are made of what TensorFlow frees afterwards.
_NAMES = POINTER(POINTER(c_void_p))
_OPEN = CFUNCTYPE(None, _HELD, _PATH, _HELD, _STATUS)
_CHANGE = CFUNCTYPE(None, _HELD, _PATH, _STATUS)
_MOVE = CFUNCTYPE(None, _HELD, _PATH, _PATH, _STATUS)
_LIST = CFUNCTYPE(c_int, _HELD, _PATH, _NAMES, _STATUS)
_OF_FILE = CFUNCTYPE(None, _HELD, _STATUS)
_FORGET = CFUNCTYPE(None, _HELD)


class FilesystemOperations(ctypes.Structure):
    """TF_FilesystemOps; TensorFlow has defaults of its own for what is left out."""

    _fields_ = (
        ("init", _OF_FILE),
        ("cleanup", _FORGET),
        ("new_random_access_file", _OPEN),
        ("new_writable_file", _OPEN),
        ("new_appendable_file", _OPEN),
        ("new_read_only_memory_region_from_file", c_void_p),
        ("create_dir", _CHANGE),
        ("recursively_create_dir", _CHANGE),
        ("delete_file", _CHANGE),
        ("delete_dir", _CHANGE),
        ("delete_recursively", CFUNCTYPE(None, _HELD, _PATH, POINTER(c_uint64), POINTER(c_uint64), _STATUS)),
        ("rename_file", _MOVE),
        ("copy_file", _MOVE),
        ("path_exists", _CHANGE),
        ("paths_exist", c_void_p),
        ("stat", CFUNCTYPE(None, _HELD, _PATH, POINTER(Statistics), _STATUS)),
        ("is_directory", CFUNCTYPE(c_bool, _HELD, _PATH, _STATUS)),
        ("get_file_size", CFUNCTYPE(c_int64, _HELD, _PATH, _STATUS)),
        ("translate_name", CFUNCTYPE(c_void_p, _HELD, _PATH)),
        ("get_children", _LIST),
        ("others", c_void_p * 13),
    )


class ReadableFileOperations(ctypes.Structure):
    """TF_RandomAccessFileOps."""

    _fields_ = (
        ("cleanup", _FORGET),
        ("read", CFUNCTYPE(c_int64, _HELD, c_uint64, c_size_t, c_void_p, _STATUS)),
    )


class WritableFileOperations(ctypes.Structure):
    """TF_WritableFileOps."""

    _fields_ = (
        ("cleanup", _FORGET),
        ("append", CFUNCTYPE(None, _HELD, c_void_p, c_size_t, _STATUS)),
        ("tell", CFUNCTYPE(c_int64, _HELD, _STATUS)),
        ("flush", _OF_FILE),
        ("sync", _OF_FILE),
        ("close", _OF_FILE),
    )


class _PluginOperations(ctypes.Structure):
    _fields_ = (
        ("scheme", c_void_p),
        *(
            (f"{part}_{name}", kind)
            for part in ("filesystem", "readable", "writable", "region")
            for name, kind in (("abi", c_int), ("api", c_int), ("size", c_size_t), ("operations", c_void_p))
        ),
    )


class _PluginInfo(ctypes.Structure):
    _fields_ = (
        ("schemes", c_size_t),
        ("operations", POINTER(_PluginOperations)),
        ("allocate", c_void_p),
        ("free", c_void_p),
    )


_C: Any = ctypes.CDLL(None)
_C.malloc.restype, _C.malloc.argtypes = c_void_p, [c_size_t]


def allocate(content: bytes) -> int:
    """Return the address of a copy, which TensorFlow frees."""
    address: int = _C.malloc(max(len(content), 1))
    ctypes.memmove(address, content, len(content))
    return address


def allocate_names(names: list[str]) -> Any:
    """Return an array of texts, which TensorFlow frees with them."""
    addresses = [allocate(name.encode() + b"\0") for name in names]
    array = (c_void_p * max(len(addresses), 1))(*addresses)
    return ctypes.cast(allocate(bytes(array)), POINTER(c_void_p))


def register(
    library: Any,
    scheme: str,
    filesystem: FilesystemOperations,
    readable: ReadableFileOperations,
    writable: WritableFileOperations,
) -> None:
    """Register a file system with TensorFlow, which may refuse it, and does nothing if it has no such interface.

    TensorFlow frees the structures that it is given. Whoever has made the functions in them keeps these alive.

    Args:
        library: libtensorflow_cc.
        scheme: beginning of the paths, without its colon.
        filesystem: functions of the file system.
        readable: functions of a file that is read.
        writable: functions of a file that is written.
    """
    # What a plugin's library is registered with that TensorFlow loads by itself.
    add = getattr(
        library,
        "_ZN10tensorflow23filesystem_registration28RegisterFilesystemPluginImplEPK23TF_FilesystemPluginInfo",
        None,
    )
    if add is None:
        return
    # An absl::Status comes back in memory that the caller names before the arguments, as C++ has it on x86-64.
    add.restype, add.argtypes = c_void_p, [c_void_p, POINTER(_PluginInfo)]
    operations = _PluginOperations(scheme=allocate(scheme.encode() + b"\0"))
    for part, structure in (("filesystem", filesystem), ("readable", readable), ("writable", writable)):
        setattr(operations, f"{part}_size", ctypes.sizeof(structure))
        setattr(operations, f"{part}_abi", VERSION)
        setattr(operations, f"{part}_api", VERSION)
        setattr(operations, f"{part}_operations", allocate(bytes(structure)))
    info = _PluginInfo(
        schemes=1,
        operations=ctypes.cast(allocate(bytes(operations)), POINTER(_PluginOperations)),
        allocate=ctypes.cast(_C.malloc, c_void_p),
        free=ctypes.cast(_C.free, c_void_p),
    )
    status = (c_void_p * 2)()
    add(ctypes.byref(status), ctypes.byref(info))
