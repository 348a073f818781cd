"""Removal of symbols and debugging information from shared objects.

What a program loads is described by the program headers. Sections after the last byte that these name, such as
`.symtab` and `.debug_info`, serve linkers and debuggers. A file in which loaded bytes come last is left as it is.
The names of fields are those of the ELF specification.
"""

import struct
from pathlib import Path

_IDENTIFICATION = b"\x7fELF\x02\x01\x01"
"""64 bits, little-endian, ELF's version 1."""
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_USED = (5, 6, 9, 10, 11, 12)
"""Of these fields: e_phoff, e_shoff, e_phentsize, e_phnum, e_shentsize, e_shnum."""
_OF_SECTIONS = (6, 11, 12, 13)
"""e_shoff, e_shentsize, e_shnum, e_shstrndx."""
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")  # p_type, p_flags, p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align
_LEAST_SAVED = 4096


def cut_sections(path: Path) -> int:
    """Cut what is not loaded off the end of a shared object, and return the number of bytes saved.

    A file that is no such object is left alone.
    """
    size = path.stat().st_size
    with path.open("rb+") as file:
        start = file.read(_HEADER.size)
        if len(start) < _HEADER.size or not start.startswith(_IDENTIFICATION):
            return 0
        fields = list(_HEADER.unpack(start))
        e_phoff, e_shoff, e_phentsize, e_phnum, e_shentsize, e_shnum = (fields[each] for each in _USED)
        file.seek(e_phoff)
        headers = file.read(e_phnum * e_phentsize)
        if e_phentsize != _PROGRAM_HEADER.size or len(headers) < e_phnum * e_phentsize:
            return 0
        end: int = e_phoff + len(headers)
        for _, _, p_offset, _, _, p_filesz, _, _ in _PROGRAM_HEADER.iter_unpack(headers):
            end = max(end, p_offset + p_filesz)
        # Bytes after the section headers belong to nobody that ELF knows: a program with a payload.
        payload = size - (e_shoff + e_shentsize * e_shnum)
        if size - end < _LEAST_SAVED or payload > 0:
            return 0
        for each in _OF_SECTIONS:
            fields[each] = 0
        file.seek(0)
        file.write(_HEADER.pack(*fields))
        file.truncate(end)
    return size - end
