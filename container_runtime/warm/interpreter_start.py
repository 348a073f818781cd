"""State of a forked program, renewed as a new interpreter would have it."""

# The program runs with the oldest Python of any image.
# ruff: noqa: PTH109, PTH123

import ctypes
import importlib
import os
import signal
import sys
import time

# More would not be read by anybody.
_MOST_PRINTED_BYTES = 1 << 16
# Of mman.h.
_MADV_DONTNEED = 4


def import_modules(names: list[str]) -> bytes:
    """Import modules; return what they print, which a program prints when it imports them itself.

    Raises:
        BaseException: whatever an import raises. What was printed before it is on standard output.
    """
    kept = os.dup(1), os.dup(2)
    printed = os.memfd_create("printed")
    try:
        for number in (1, 2):
            os.dup2(printed, number)
        for name in names:
            importlib.import_module(name)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, before in zip((1, 2), kept):  # noqa: B905 - the oldest Python has no strict zip
            os.dup2(before, number)
            os.close(before)
        text = os.pread(printed, _MOST_PRINTED_BYTES, 0)
        os.close(printed)
        if sys.exc_info()[0] is not None:
            os.write(1, text)
    return text


def drop_clean_pages() -> None:
    """Give back the memory of files' pages that only the imports needed; the kernel finds them again where they are.

    A page of a file that was not written to is read from the same file when it is touched. With TensorFlow they are
    more than half of the memory after the imports, and a training touches few of them.
    """
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start, end in list_clean_mappings():
        madvise(start, end - start, _MADV_DONTNEED)


def list_clean_mappings() -> list[tuple[int, int]]:
    """Return the first and the last address of each mapping of a file without a page of this process's own."""
    found = []
    mapping = None
    with open("/proc/self/smaps", encoding="utf-8", errors="surrogateescape") as smaps:
        for line in smaps:
            fields = line.split(maxsplit=5)
            if not fields[0].endswith(":"):
                is_file = len(fields) == 6 and fields[5].startswith("/")
                start, _, end = fields[0].partition("-")
                mapping = (int(start, 16), int(end, 16)) if is_file and fields[1] in ("r-xp", "r--p") else None
            elif mapping is not None and fields[0] == "Anonymous:" and fields[1] == "0":
                found.append(mapping)
    return found


def reset_signals() -> None:
    """Undo what a shell ignores in what it starts in the background: SIGINT and SIGQUIT."""
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python itself ignores these
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def read_given_names() -> set[str]:
    """Return the names of the variables that this process was started with."""
    with open("/proc/self/environ", "rb") as environ:
        return {os.fsdecode(each.partition(b"=")[0]) for each in environ.read().split(b"\0")}


def replace_environment(environment: dict[str, str]) -> None:
    """Replace all variables of this process, and what /proc shows of them."""
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    with open("/proc/self/stat", "rb") as file:
        # env_start and env_end, the fields 50 and 51; the second one ends with the last parenthesis.
        start, end = map(int, file.read().rpartition(b")")[2].split()[47:49])
    block = b"".join(os.fsencode(f"{name}={value}\0") for name, value in environment.items())
    # No variable is in this memory any more: the C library has copied them. /proc/PID/environ still shows it, and the
    # back end finds the processes of a container by it.
    if start and len(block) <= end - start:
        ctypes.memmove(start, block.ljust(end - start, b"\0"), end - start)


def renew_standard_library() -> None:
    """Reset what modules of the standard library have kept from this interpreter's own start."""
    if process := sys.modules.get("multiprocessing.process"):
        process.ORIGINAL_DIR = os.getcwd()  # type: ignore[attr-defined]
        current = process.current_process()
        current.authkey = os.urandom(32)
    if tempfile := sys.modules.get("tempfile"):
        tempfile.tempdir = None  # type: ignore[attr-defined]
    if random := sys.modules.get("random"):
        random.seed()
