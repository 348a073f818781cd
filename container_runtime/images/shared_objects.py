"""ELF editing: imports of shared objects, removal of links to absent libraries.

A dynamic linker refuses to load an object if a library that it needs, or a symbol that it imports, is missing. This
module removes the libraries from the object's list of needed libraries.

A versioned symbol is known to come from one of these libraries by its version. It becomes a function in the object
itself that does nothing and returns 0, because such functions are called while the object is loaded. Other symbols may
come from any library. They become weak: the linker resolves them if it can, and otherwise sets them to 0, which fails
only if they are called.

Bytes are changed in place and none are added, so nothing moves. The field names are those of the ELF specification.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from container_runtime.runtime import WheelhouseError

if TYPE_CHECKING:
    import mmap
    import re
    from collections.abc import Iterator

_IDENTIFICATION = b"\x7fELF\x02\x01\x01"
"""64 bits, little-endian, ELF's version 1."""
_X86_64 = 62
_RETURN_0 = b"\x31\xc0\xc3"
"""Its instructions: xor eax, eax; ret."""

_LOADED, _EXECUTABLE, _PT_DYNAMIC = 1, 1, 2
_NEEDED, _STRINGS = 1, 5
_VERSIONS, _NEEDED_VERSIONS, _NEEDED_VERSIONS_COUNT = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
_VERSION_NUMBER = 0x7FFF
_LOCAL, _WEAK, _FUNCTION, _HIDDEN = 0, 2, 2, 2
_SYMBOLS_OF_DYNAMIC_LINKER = 11
_ANY_SECTION = 1
"""A symbol with section 0 is undefined. The linker accepts any other section."""

_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")  # p_type, p_flags, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")  # sh_name, sh_type, sh_flags, sh_addr, sh_offset, sh_size, …
_DYNAMIC = struct.Struct("<QQ")  # d_tag, d_val
_SYMBOL = struct.Struct("<IBBHQQ")  # st_name, st_info, st_other, st_shndx, st_value, st_size
_NEEDED_LIBRARY = struct.Struct("<HHIII")  # vn_version, vn_cnt, vn_file, vn_aux, vn_next
_NEEDED_VERSION = struct.Struct("<IHHII")  # vna_hash, vna_flags, vna_other, vna_name, vna_next


def unlink_libraries(content: bytes, libraries: re.Pattern[str], names: re.Pattern[str]) -> bytes:
    """Return a shared object without links to the libraries. The bytes are unchanged if it needs none of them.

    Args:
        content: content of the file.
        libraries: pattern that matches the full name of each library to remove.
        names: pattern that is found in every unversioned symbol that may come from these libraries.

    Raises:
        WheelhouseError: the content is not a shared object, it is damaged, or it needs one of the libraries and is not
            for x86-64.
    """
    if not content.startswith(_IDENTIFICATION):
        raise WheelhouseError("it is not a shared object of 64 bits, little-endian")
    try:
        return _SharedObject(bytearray(content)).unlink(libraries, names)
    except (struct.error, KeyError, IndexError, StopIteration, ValueError) as exc:
        raise WheelhouseError("it is a damaged shared object") from exc


class Imports(NamedTuple):
    """What a shared object takes from other libraries, and what it offers.

    Attributes:
        libraries: names of the libraries that it needs.
        versioned: for each library that has versions, the imported symbols with their version.
        unversioned: imported symbols of which the object does not say what library they come from.
        defined: symbols that other objects can import.
    """

    libraries: frozenset[str]
    versioned: dict[str, dict[str, str]]
    unversioned: frozenset[str]
    defined: frozenset[str]


def read_imports(content: bytearray | mmap.mmap) -> Imports:
    """Return the imports of a shared object.

    Raises:
        WheelhouseError: the content is not a shared object of 64 bits, or it is damaged.
    """
    if bytes(content[: len(_IDENTIFICATION)]) != _IDENTIFICATION:
        raise WheelhouseError("it is not a shared object of 64 bits, little-endian")
    try:
        return _SharedObject(content).read_imports()
    except (struct.error, KeyError, IndexError, StopIteration, ValueError) as exc:
        raise WheelhouseError("it is a damaged shared object") from exc


class _Segment(NamedTuple):
    offset: int
    address: int
    size: int
    executable: bool


class _SharedObject:
    def __init__(self, content: bytearray | mmap.mmap) -> None:
        self._content = content
        start, size, count = *struct.unpack_from("<Q", content, 32), *struct.unpack_from("<HH", content, 54)
        headers = [_PROGRAM_HEADER.unpack_from(content, start + number * size) for number in range(count)]
        self._segments = [
            _Segment(offset, address, held, bool(flags & _EXECUTABLE))
            for kind, flags, offset, address, _, held, *_ in headers
            if kind == _LOADED
        ]
        if any(each.offset + each.size > len(content) for each in self._segments):
            raise WheelhouseError("it is cut short")
        _, _, self._dynamic_offset, _, _, length, *_ = next(each for each in headers if each[0] == _PT_DYNAMIC)
        self._dynamic_length = length // _DYNAMIC.size
        entries = _DYNAMIC.iter_unpack(content[self._dynamic_offset : self._dynamic_offset + length])
        self._dynamic = [entry for entry in entries if entry[0]]
        self._tables = dict(self._dynamic)

    def read_imports(self) -> Imports:
        numbered: dict[int, tuple[str, str]] = {}
        for place, (_, count, name, first, _) in self._walk_needed_versions():
            at = place + first
            for _ in range(count):
                _, _, number, version, following = _NEEDED_VERSION.unpack_from(self._content, at)
                numbered[number] = self._read_string(name), self._read_string(version)
                at += following
        versioned: dict[str, dict[str, str]] = {}
        unversioned, defined = set(), set()
        versions = self._locate(self._tables[_VERSIONS]) if _VERSIONS in self._tables else None
        for number, place in enumerate(self._walk_symbols()):
            start, _, _, section, _, _ = _SYMBOL.unpack_from(self._content, place)
            if not start:
                continue
            symbol = self._read_string(start)
            (version,) = (0,) if versions is None else struct.unpack_from("<H", self._content, versions + 2 * number)
            source = numbered.get(version & _VERSION_NUMBER)
            if section:
                defined.add(symbol)
            elif source is None:
                unversioned.add(symbol)
            else:
                versioned.setdefault(source[0], {})[symbol] = source[1]
        libraries = frozenset(self._read_string(value) for tag, value in self._dynamic if tag == _NEEDED)
        return Imports(libraries, versioned, frozenset(unversioned), frozenset(defined))

    def unlink(self, libraries: re.Pattern[str], names: re.Pattern[str]) -> bytes:
        gone = {
            value for tag, value in self._dynamic if tag == _NEEDED and libraries.fullmatch(self._read_string(value))
        }
        if not gone:
            return bytes(self._content)
        if struct.unpack_from("<H", self._content, 18)[0] != _X86_64:
            raise WheelhouseError("only objects for x86-64 can be changed so")
        self._dynamic = [entry for entry in self._dynamic if entry[0] != _NEEDED or entry[1] not in gone]
        self._change_symbols(names, self._unlink_versions(libraries))
        filled = [*self._dynamic, *[(0, 0)] * (self._dynamic_length - len(self._dynamic))]
        for number, entry in enumerate(filled):
            _DYNAMIC.pack_into(self._content, self._dynamic_offset + number * _DYNAMIC.size, *entry)
        return bytes(self._content)

    def _unlink_versions(self, libraries: re.Pattern[str]) -> set[int]:
        """Remove the libraries from the version requirements, and return the numbers of the removed versions."""
        kept, numbers = [], set()
        for place, (_, count, name, first, _) in self._walk_needed_versions():
            if libraries.fullmatch(self._read_string(name)) is None:
                kept.append(place)
                continue
            at = place + first
            for _ in range(count):
                _, _, number, _, following = _NEEDED_VERSION.unpack_from(self._content, at)
                numbers.add(number)
                at += following
        for place, following in zip(kept, [*kept[1:], None], strict=True):
            members = _NEEDED_LIBRARY.unpack_from(self._content, place)
            distance = 0 if following is None else following - place
            _NEEDED_LIBRARY.pack_into(self._content, place, *members[:4], distance)
        if numbers:
            # The table is in one segment, so file offsets and addresses differ by a constant.
            moved = kept[0] - self._locate(self._tables[_NEEDED_VERSIONS]) if kept else 0
            new = {_NEEDED_VERSIONS: self._tables[_NEEDED_VERSIONS] + moved, _NEEDED_VERSIONS_COUNT: len(kept)}
            entries = [(tag, new.get(tag, value)) for tag, value in self._dynamic]
            self._dynamic = [entry for entry in entries if kept or entry[0] not in new]
        return numbers

    def _walk_needed_versions(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        if _NEEDED_VERSIONS not in self._tables:
            return
        place = self._locate(self._tables[_NEEDED_VERSIONS])
        for _ in range(self._tables[_NEEDED_VERSIONS_COUNT]):
            members = _NEEDED_LIBRARY.unpack_from(self._content, place)
            yield place, members
            if not members[4]:
                return
            place += members[4]

    def _change_symbols(self, names: re.Pattern[str], gone: set[int]) -> None:
        """Define undefined symbols that have a removed version, and make those weak whose name matches."""
        for number, place in enumerate(self._walk_symbols()):
            name, info, _, section, _, size = _SYMBOL.unpack_from(self._content, place)
            if section or not name:
                continue
            version_at = self._locate(self._tables[_VERSIONS]) + 2 * number if _VERSIONS in self._tables else None
            if version_at and struct.unpack_from("<H", self._content, version_at)[0] & _VERSION_NUMBER in gone:
                defined = (name, _LOCAL << 4 | _FUNCTION, _HIDDEN, _ANY_SECTION, self._find_return(), size)
                _SYMBOL.pack_into(self._content, place, *defined)
                struct.pack_into("<H", self._content, version_at, 0)
            elif names.search(self._read_string(name)):
                self._content[place + 4] = _WEAK << 4 | info & 0xF

    def _walk_symbols(self) -> Iterator[int]:
        (start,), (size, count) = (
            struct.unpack_from("<Q", self._content, 40),
            struct.unpack_from("<HH", self._content, 58),
        )
        for number in range(count):
            _, kind, _, _, first, length, *_ = _SECTION_HEADER.unpack_from(self._content, start + number * size)
            if kind == _SYMBOLS_OF_DYNAMIC_LINKER:
                yield from range(first, first + length, _SYMBOL.size)

    def _find_return(self) -> int:
        """Return the address of instructions that return 0, such as the end of some function."""
        for segment in self._segments:
            found = self._content.find(_RETURN_0, segment.offset, segment.offset + segment.size)
            if segment.executable and found >= 0:
                return segment.address + found - segment.offset
        raise WheelhouseError("it has no instructions that return 0, which what is missing could be")

    def _locate(self, address: int) -> int:
        """Return the file offset of an address."""
        segment = next(each for each in self._segments if each.address <= address < each.address + each.size)
        return segment.offset + address - segment.address

    def _read_string(self, start: int) -> str:
        first = self._locate(self._tables[_STRINGS]) + start
        end = self._content.find(b"\0", first)
        if end < 0:
            raise ValueError("a string without an end")
        return self._content[first:end].decode()
