"""Linux namespaces of one process: mounts, a private /tmp, an isolated network.

Linux grants namespaces to root. On most machines it also grants them to other users, within a user namespace in which
the process keeps its uid and gid. Namespaces change no files of the host, and end with their last process.

The module is also a program. ``namespaces.py FOLDER [isolated]`` tests whether this machine grants namespaces: it exits
with 0, or prints the error. ``namespaces.py`` without arguments holds a network namespace until it is killed, so that
other processes can join it.

The supervisor imports this module just before a container's command starts, so the module imports little.
"""

# pathlib would double the time that the supervisor takes to start.
# ruff: noqa: PTH102, PTH103, PTH109, PTH110, PTH112, PTH116, PTH118, PTH120, PTH123, PTH208, PTH211

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
# Mount flags that a user namespace may not remove: they have to be repeated when a mount is made read-only.
KEPT_FLAGS = os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC

PROBED = "/opt/ml"
_STAGE = "/tmp"  # noqa: S108 - a folder that every Linux has, to mount on
_libc = ctypes.CDLL(None, use_errno=True)


def enter(mounts: list[tuple[str, str, bool]], *, isolated: bool, holder: int | None = None) -> None:
    """Move the calling process into its own namespaces. The process may have only one thread.

    Args:
        mounts: folders to mount: source, target, and whether the mount is read-only. Other files in the parent folder
            of a target stay visible.
        isolated: whether the process gets a network namespace that has only a loopback interface.
        holder: pid of the process whose network namespace to join. None for a new network namespace.

    Raises:
        OSError: the kernel does not grant the namespaces, or a folder cannot be mounted.
    """
    folder = os.getcwd()
    if holder is not None:
        _join(holder)
    _move(CLONE_NEWNS | (CLONE_NEWNET if isolated and holder is None else 0))
    # Later mounts of the host are visible here, but mounts made here are not visible to the host.
    _mount(None, "/", None, MS_REC | MS_SLAVE)
    _place(mounts)
    if isolated and holder is None:
        _raise_loopback()
    os.chdir(folder)  # the same path, with the new mounts


def _move(wanted: int) -> None:
    """Enter new namespaces. A process that is not root also enters a new user namespace."""
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
    user, network = (os.open(f"/proc/{holder}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in ("user", "net"))
    if not os.path.samestat(os.fstat(user), os.stat("/proc/self/ns/user")):
        _check(_libc.setns(user, CLONE_NEWUSER), "setns")
    _check(_libc.setns(network, CLONE_NEWNET), "setns")
    os.close(user)
    os.close(network)


def _place(mounts: list[tuple[str, str, bool]]) -> None:
    # Open all sources first: a mount may hide the sources of the other mounts.
    sources = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source, _, _ in mounts]
    # The mount points so far, and whether folders may be created in them.
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
    """Create a folder without changing the host.

    If the folder would be created in the host's file system, its parent is first covered with an empty one.
    """
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
    """Mount an empty file system over a folder, and mount the folder's content into it."""
    entries = {
        name: os.open(os.path.join(folder, name), os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        for name in os.listdir(folder)
    }
    # Nothing can be mounted over the root directory while it is in use. A new root is built elsewhere, then entered.
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
        # The bind mount of the stage's folder includes the file system that is now mounted on it: remove that.
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
    """Hold a network namespace that other processes can join, and print ``ready`` when it exists.

    End at once if standard input ends without a byte: whoever started this process was killed before it recorded it.
    """
    try:
        _move(CLONE_NEWNET)
        _raise_loopback()
    except OSError as error:
        sys.exit(error.strerror or str(error))
    os.write(1, b"ready")
    os.close(1)
    if not os.read(0, 1):
        sys.exit()
    while True:
        signal.pause()


def main() -> None:
    """Test whether the kernel grants namespaces: a mounted folder has to be visible at its target."""
    folder, *isolated = sys.argv[1:]
    try:
        enter([(folder, PROBED, False)], isolated=bool(isolated))
    except OSError as error:
        sys.exit(error.strerror or str(error))
    if not os.path.exists(f"{PROBED}/seen"):
        sys.exit(f"a folder mounted at {PROBED} is not seen there")


if __name__ == "__main__":
    main() if sys.argv[1:] else hold()
