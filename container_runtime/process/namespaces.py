"""Linux namespaces of one process: mounts, a private /tmp, an isolated network.

Linux grants them to root, and on most machines to everybody, in a user namespace in which the process stays the user
that it is. Nothing of the host's files is changed, and they end with their last process. Run as a program, this module
tries whether they are granted here: ``namespaces.py FOLDER [isolated]`` ends with 0 or says why not. ``namespaces.py``
alone stays in a network namespace until it is killed, for other processes to join.

It is imported by the supervisor, just before a container's command starts, so it imports little.
"""

# pathlib would double the time that the supervisor takes to start.
# ruff: noqa: PTH102, PTH103, PTH109, PTH110, PTH112, PTH116, PTH118, PTH120, PTH123, PTH208, PTH211

from __future__ import annotations

import ctypes
import os
import signal
import stat
import sys

# <linux/sched.h>, <linux/mount.h>, <linux/sockios.h>, <linux/if.h>. Python has os.unshare from 3.12 on, and no mount.
CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
MS_RDONLY = 1
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_SLAVE = 1 << 19
MNT_DETACH = 2
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
# Flags of a mount that a user namespace may not take away: they have to be repeated when it is made read-only.
KEPT_FLAGS = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC

PROBED = "/opt/ml"
_STAGE = "/tmp"  # noqa: S108 - a folder that every Linux has, to mount on
_libc = ctypes.CDLL(None, use_errno=True)


def enter(mounts: list[tuple[str, str, bool]], *, isolated: bool, holder: int | None = None) -> None:
    """Move the calling process, which has a single thread, into namespaces of its own.

    Args:
        mounts: folders to see elsewhere: source, target, and whether it is read-only. What else is where a target is
            to be stays visible beside it.
        isolated: it gets a network namespace with nothing but a loopback interface.
        holder: number of the process whose network namespace that is; None for one of its own.

    Raises:
        OSError: the kernel does not grant them, or a folder cannot be mounted.
    """
    folder = os.getcwd()
    if holder is not None:
        _join(holder)
    _move(CLONE_NEWNS | (CLONE_NEWNET if isolated and holder is None else 0))
    # What the host mounts later is seen here; what is mounted here is not seen there.
    _mount(None, "/", None, MS_REC | MS_SLAVE)
    _place(mounts)
    if isolated and holder is None:
        _raise_loopback()
    os.chdir(folder)  # the same path, as it is seen from now on


def _move(wanted: int) -> None:
    """Enter new namespaces, an ordinary user in a user namespace of his own."""
    try:
        _unshare(wanted)
    except PermissionError:
        uid, gid = os.geteuid(), os.getegid()
        _unshare(wanted | CLONE_NEWUSER)
        for name, content in (
            ("setgroups", b"deny"),
            ("gid_map", b"%d %d 1" % (gid, gid)),
            ("uid_map", b"%d %d 1" % (uid, uid)),
        ):
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(content)


def _join(holder: int) -> None:
    """Enter the network namespace of a process, and the user namespace that it belongs to."""
    user, network = (os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("user", "net"))
    if not os.path.samestat(os.fstat(user), os.stat("/proc/self/ns/user")):
        _check(_libc.setns(user, CLONE_NEWUSER), "setns")
    _check(_libc.setns(network, CLONE_NEWNET), "setns")
    os.close(user)
    os.close(network)


def _place(mounts: list[tuple[str, str, bool]]) -> None:
    # Opened before the first of them is mounted, for that may hide the others' sources.
    sources = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source, _, _ in mounts]
    # Folders that have become mount points, and whether folders may be made in them.
    made: dict[str, bool] = {}
    entries = (
        (os.path.realpath(target), source, read) for source, (_, target, read) in zip(sources, mounts, strict=True)
    )
    for target, source, read_only in sorted(entries, key=lambda entry: entry[0].count("/")):
        _make_folder(target, made)
        _bind(source, target)
        if read_only:
            kept = os.statvfs(target).f_flag & KEPT_FLAGS
            _mount(None, target, None, MS_REMOUNT | MS_BIND | MS_RDONLY | kept)
        made[target] = not read_only
    for source in sources:
        os.close(source)


def _make_folder(target: str, made: dict[str, bool]) -> None:
    """Make a folder, but none on the host: where it would be made there, the folder around it is covered first."""
    parent = target
    while not os.path.isdir(parent):
        parent = os.path.dirname(parent)
    if parent == target:
        return
    mounted = max((each for each in made if f"{parent}/".startswith(f"{each.rstrip('/')}/")), key=len, default="/")
    if not made.get(mounted, False):
        _cover(parent, made)
    os.makedirs(target)


def _cover(folder: str, made: dict[str, bool]) -> None:
    """Put an empty file system over a folder, and what was in the folder into that."""
    entries = {
        name: os.open(os.path.join(folder, name), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        for name in os.listdir(folder)
    }
    # Nothing can be put over the root while it is in use: it is put together elsewhere, and becomes the root then.
    stage = _STAGE if folder == "/" else folder
    _mount("tmpfs", stage, "tmpfs", 0, "mode=755")
    for name, entry in entries.items():
        path, mode = os.path.join(stage, name), os.fstat(entry).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink("", dir_fd=entry), path)
        else:
            if stat.S_ISDIR(mode):
                os.mkdir(path)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC))
            _bind(entry, path)
            made[os.path.join(folder, name)] = False
        os.close(entry)
    if folder == "/":
        # The folder under the stage was bound together with what is mounted on it by now.
        _unmount(stage + _STAGE)
        os.chroot(stage)
    made[folder] = True


def _bind(source: int, target: str) -> None:
    _mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)


def _unshare(flags: int) -> None:
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _check(_libc.mount(*encoded[:3], ctypes.c_ulong(flags), encoded[3]), f"mount at {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _unmount(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"unmount {target}")


def _raise_loopback() -> None:
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def hold() -> None:
    """Stay in a network namespace of which other processes may become part; say ``ready`` once it is there."""
    try:
        _move(CLONE_NEWNET)
        _raise_loopback()
    except OSError as error:
        sys.exit(error.strerror or str(error))
    os.write(1, b"ready")
    os.close(1)
    while True:
        signal.pause()


def main() -> None:
    """Try whether the kernel grants them: the folder has to be seen where it was asked for."""
    folder, *isolated = sys.argv[1:]
    try:
        enter([(folder, PROBED, False)], isolated=bool(isolated))
    except OSError as error:
        sys.exit(error.strerror or str(error))
    if not os.path.exists(f"{PROBED}/seen"):
        sys.exit(f"a folder mounted at {PROBED} is not seen there")


if __name__ == "__main__":
    main() if sys.argv[1:] else hold()
