"""Generated shared object with a missing library, made without a compiler.

It is linked to the C library as well.
"""

import struct

GONE = "libgone.so.3"
# Number of each version in the object.
_OF_C, _OF_GONE = 2, 3
_RETURN_0 = b"\x31\xc0\xc3"


def write_shared_object(needed: tuple[str, ...] = ("libc.so.6", GONE), *, with_return: bool = True) -> bytes:
    """Build the bytes of an object for x86-64.

    It exports ``call_pid``, which calls the C library's getpid, ``call_gone``, which calls the missing library's
    ``gone_start`` by its version, and ``find_gone_place``, which returns the address of ``gone_place``, of no version.

    Args:
        needed: libraries, in the order in which their versions are asked for.
        with_return: whether it has the instructions "return 0".
    """
    strings = b"\0"
    at: dict[str, int] = {}
    imported, exported = ("getpid", "gone_start", "gone_place"), ("call_pid", "call_gone", "find_gone_place")
    for name in (*needed, "GLIBC_2.2.5", "GONE_1", *imported, *exported):
        at[name] = len(strings)
        strings += name.encode() + b"\0"

    # Where everything is: in the file as in memory.
    slots, code = 64 + 2 * 56, 64 + 2 * 56 + 3 * 8
    steps = [b"\xff\x25", b"\xff\x25", b"\x48\x8b\x05"]  # jmp *slot; jmp *slot; mov rax, slot, and after it ret
    starts, text = [], b""
    for number, step in enumerate(steps):
        starts.append(code + len(text))
        after = code + len(text) + len(step) + 4
        text += step + struct.pack("<i", slots + 8 * number - after) + b"\xc3"
    text += _RETURN_0 if with_return else b""
    text += b"\0" * (-(code + len(text)) % 8)

    symbols = code + len(text)
    table = b"\0" * 24
    table += b"".join(struct.pack("<IBBHQQ", at[name], 0x10, 0, 0, 0, 0) for name in imported)
    pairs = zip(exported, starts, strict=True)
    table += b"".join(struct.pack("<IBBHQQ", at[name], 0x12, 0, 1, start, 8) for name, start in pairs)
    versions = symbols + len(table)
    numbers = struct.pack("<8H", 0, _OF_C, _OF_GONE, 1, 1, 1, 1, 0)
    needs = versions + len(numbers)
    asked = {"libc.so.6": ("GLIBC_2.2.5", _OF_C), GONE: ("GONE_1", _OF_GONE)}
    libraries = b""
    for place, library in enumerate(needed):
        version, number = asked[library]
        libraries += struct.pack("<HHIII", 1, 1, at[library], 16, 32 if place + 1 < len(needed) else 0)
        libraries += struct.pack("<IHHII", _hash(version), 0, number, at[version], 0)
    relocations = needs + len(libraries)
    moved = b"".join(struct.pack("<QQq", slots + 8 * number, (number + 1) << 32 | 6, 0) for number in range(3))
    hashes = relocations + len(moved)
    # One bucket, and a chain through what is exported.
    chain = struct.pack("<10I", 1, 7, 4, 0, 0, 0, 0, 5, 6, 0)
    dynamic = hashes + len(chain)
    entries = [(1, at[library]) for library in needed]
    entries += [
        (4, hashes),
        (5, 0),
        (6, symbols),
        (10, len(strings)),
        (11, 24),
        (7, relocations),
        (8, len(moved)),
        (9, 24),
    ]
    entries += [(0x6FFFFFF0, versions), (0x6FFFFFFE, needs), (0x6FFFFFFF, len(needed)), (0, 0)]
    texts = dynamic + 16 * len(entries)
    entries = [(tag, texts if tag == 5 else value) for tag, value in entries]
    end = texts + len(strings) + -(texts + len(strings)) % 8
    sections = struct.pack("<64x") + struct.pack("<IIQQQQIIQQ", 0, 11, 2, symbols, symbols, len(table), 0, 1, 8, 24)

    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, end, 0, 64, 56, 2, 64, 2, 0)
    header += struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, end, end, 0x1000)
    header += struct.pack("<IIQQQQQQ", 2, 6, dynamic, dynamic, dynamic, 16 * len(entries), 16 * len(entries), 8)
    content = header + b"\0" * 24 + text + table + numbers + libraries + moved + chain
    content += b"".join(struct.pack("<QQ", *entry) for entry in entries) + strings
    return content.ljust(end, b"\0") + sections


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value
