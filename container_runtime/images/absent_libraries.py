"""GPU libraries' placeholders: shared objects whose functions all fail.

PyPI has the older PyTorch releases only as builds for CUDA. Such a build cannot be imported without CUDA's libraries,
which are gigabytes that no job here uses. A placeholder has a library's name and the symbols that PyTorch imports from
it. Each function reports that there is no GPU, and PyTorch then says what it says on any machine without one.
"""

import mmap
import re
import struct
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from container_runtime.images.shared_objects import Imports, read_imports
from container_runtime.runtime import WheelhouseError

_LIBRARY = re.compile(r".*\.so(\.\d+)*")
_GPU_LIBRARY = re.compile(r"lib(cu|nccl|nv)\w*\.so(\.\d+)*")
# The driver's own library: where it is absent PyTorch copes, for it opens it only when there is a GPU.
_DRIVER = "libcuda.so.1"
_GPU_SYMBOL = re.compile(r"_*(cu|nccl|nv)[A-Za-z]")
# Functions whose result is text, not a number.
_TEXT_RESULT = re.compile(r"(String|ErrorName|ncclGetLastError)$")

NO_DEVICE = 100
"""What each function returns: CUDA's error code for a machine without a GPU. It is an error in the other libraries."""

_MESSAGE = b"no GPU here\0"
_PAGE = 4096
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")  # p_type, p_flags, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align
_SYMBOL = struct.Struct("<IBBHQQ")  # st_name, st_info, st_other, st_shndx, st_value, st_size
_DEFINED_VERSION = struct.Struct("<HHHHIIIII")  # Verdef and the Verdaux that follows it
_LOAD, _DYNAMIC, _STACK = 1, 2, 0x6474E551
_GLOBAL_FUNCTION = 1 << 4 | 2


@dataclass(slots=True)
class _Strings:
    content: bytearray = field(default_factory=lambda: bytearray(b"\0"))
    places: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> int:
        if text not in self.places:
            self.places[text] = len(self.content)
            self.content += text.encode() + b"\0"
        return self.places[text]


def build_placeholders(wheels: Iterable[Path]) -> dict[str, bytes]:
    """Return a placeholder for each GPU library that the shared objects of some wheels need and do not bring.

    Returns:
        Contents of the shared objects, by the library's name.

    Raises:
        WheelhouseError: a shared object of a wheel is damaged.
    """
    imports = [found for wheel in wheels for found in _read_wheel(wheel)]
    brought = {name for name, _ in imports}
    defined = frozenset[str]().union(*(found.defined for _, found in imports))
    symbols: dict[str, dict[str, str | None]] = {}
    for _, found in imports:
        absent = {each for each in found.libraries - brought if _GPU_LIBRARY.fullmatch(each)} - {_DRIVER}
        of_no_version = {name for name in found.unversioned - defined if _GPU_SYMBOL.match(name)}
        for library in absent:
            # Which of the libraries has a symbol without a version is not known: all of them do.
            members = {**dict.fromkeys(of_no_version), **found.versioned.get(library, {})}
            known = symbols.setdefault(library, {})
            known.update({name: version for name, version in members.items() if version or name not in known})
    return {library: build_library(library, members) for library, members in sorted(symbols.items())}


def _read_wheel(wheel: Path) -> Iterator[tuple[str, Imports]]:
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory(dir=wheel.parent) as temporary:
        for member in archive.infolist():
            if not _LIBRARY.fullmatch(member.filename):
                continue
            # Some have nearly a gigabyte, of which a small part is read.
            path = Path(archive.extract(member, temporary))
            try:
                yield path.name, _read_library(path)
            except WheelhouseError as error:
                raise WheelhouseError(f"{member.filename} of {wheel.name} cannot be read: {error}") from error
            path.unlink()


def _read_library(path: Path) -> Imports:
    if not path.stat().st_size:
        raise WheelhouseError("it is empty")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return read_imports(content)


def build_library(name: str, symbols: Mapping[str, str | None]) -> bytes:
    """Return a shared object for x86-64 with these functions, which all fail.

    Args:
        name: name of the library, for example ``libcudart.so.12``.
        symbols: names of the functions, with the version of each, or None for one without a version.
    """
    strings = _Strings()
    soname = strings.add(name)
    versions = [name, *sorted({each for each in symbols.values() if each is not None})]
    numbers = {version: number for number, version in enumerate(versions[1:], start=2)}
    definitions = _define_versions(versions, strings)
    names = sorted(symbols)
    starts = [strings.add(each) for each in names]

    parts: dict[str, bytes] = {
        "hash": _build_hash_table(names),
        "versions": struct.pack(f"<{len(names) + 1}H", 0, *(numbers.get(symbols[each] or "", 1) for each in names)),
        "definitions": definitions,
        "symbols": bytes(_SYMBOL.size * (len(names) + 1)),
        "strings": bytes(strings.content),
        "code": _build_code(),
    }
    place = _HEADER.size + 4 * _PROGRAM_HEADER.size
    places: dict[str, int] = {}
    for part, content in parts.items():
        place += -place % 16
        places[part] = place
        place += len(content)
    read_only = place
    failing, texting = places["code"], places["code"] + 16
    parts["symbols"] = bytes(_SYMBOL.size) + b"".join(
        _SYMBOL.pack(start, _GLOBAL_FUNCTION, 0, 1, texting if _TEXT_RESULT.search(each) else failing, 16)
        for each, start in zip(names, starts, strict=True)
    )
    dynamic = read_only + -read_only % _PAGE
    entries = [
        (14, soname),
        (4, places["hash"]),
        (5, places["strings"]),
        (6, places["symbols"]),
        (10, len(strings.content)),
        (11, _SYMBOL.size),
        (0x6FFFFFF0, places["versions"]),
        (0x6FFFFFFC, places["definitions"]),
        (0x6FFFFFFD, len(versions)),
        (0, 0),
    ]
    table = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    headers = [
        (_LOAD, 5, 0, 0, 0, read_only, read_only, _PAGE),
        (_LOAD, 6, dynamic, dynamic, dynamic, len(table), len(table), _PAGE),
        (_DYNAMIC, 6, dynamic, dynamic, dynamic, len(table), len(table), 8),
        (_STACK, 6, 0, 0, 0, 0, 0, 16),
    ]
    built = bytearray(dynamic) + table
    identification = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    # A shared object (3) for x86-64 (62), without sections.
    _HEADER.pack_into(built, 0, identification, 3, 62, 1, 0, _HEADER.size, 0, 0, _HEADER.size, 56, 4, 64, 0, 0)
    for number, header in enumerate(headers):
        _PROGRAM_HEADER.pack_into(built, _HEADER.size + number * _PROGRAM_HEADER.size, *header)
    for part, found in parts.items():
        built[places[part] : places[part] + len(found)] = found
    return bytes(built)


def _build_code() -> bytes:
    """Return two functions of 16 bytes, one that returns the error code and one a text, and the text."""
    # mov eax, NO_DEVICE; ret — lea rax, [the text, 25 bytes after this instruction]; ret
    failing = b"\xb8" + struct.pack("<I", NO_DEVICE) + b"\xc3"
    texting = b"\x48\x8d\x05" + struct.pack("<i", 16 - 7) + b"\xc3"
    return failing.ljust(16, b"\xcc") + texting.ljust(16, b"\xcc") + _MESSAGE


def _define_versions(versions: list[str], strings: _Strings) -> bytes:
    content = b""
    for number, version in enumerate(versions, start=1):
        following = 0 if number == len(versions) else _DEFINED_VERSION.size
        base = 1 if number == 1 else 0
        content += _DEFINED_VERSION.pack(1, base, number, 1, _hash(version), 20, following, strings.add(version), 0)
    return content


def _build_hash_table(names: list[str]) -> bytes:
    buckets, chains = [0] * max(1, len(names)), [0] * (len(names) + 1)
    for number, name in enumerate(names, start=1):
        bucket = _hash(name) % len(buckets)
        chains[number], buckets[bucket] = buckets[bucket], number
    return struct.pack(f"<{2 + len(buckets) + len(chains)}I", len(buckets), len(chains), *buckets, *chains)


def _hash(name: str) -> int:
    """Return the hash of a name by the function that the ELF specification gives."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value ^= (value & 0xF0000000) >> 24
        value &= 0x0FFFFFFF
    return value
