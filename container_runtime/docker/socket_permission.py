"""Docker sockets without permission: their owner, and commands that give access."""

import grp
import os
import pwd
import stat
from pathlib import Path

from container_runtime.machine import is_in_own_image


def explain_refusal(socket: Path) -> str:
    """Return one or two sentences: who owns the socket, and how this user gets access to it."""
    user = _name_user(os.geteuid())
    try:
        found = socket.stat()
    except OSError as error:
        return (
            f"The Docker socket {socket} cannot be reached by {user} ({error.strerror}): a folder above it is closed. "
            "Name the socket of an engine of your own with DOCKER_HOST=unix://PATH."
        )
    group, mode = _name_group(found.st_gid), stat.S_IMODE(found.st_mode)
    what = (
        f"The Docker socket {socket} may not be opened by {user}: it is of {_name_user(found.st_uid)}, group {group}, "
        f"mode {mode:04o}."
    )
    if is_in_own_image():
        return f"{what} Start the container with --group-add {found.st_gid}, or as root with --user 0:0."
    both = stat.S_IRGRP | stat.S_IWGRP
    if mode & both != both or found.st_gid == 0:
        return (
            f"{what} Give it to a group (sudo groupadd -f docker; sudo chgrp docker {socket}; sudo chmod 660 {socket}) "
            f"and join that: sudo usermod -aG docker {user}, then newgrp docker."
        )
    if found.st_gid in _list_groups(user):
        return f"{what} {user} is in that group, but this session is older: newgrp {group}, or log in again."
    return f"{what} Join the group: sudo usermod -aG {group} {user}, then newgrp {group} (other shells: log in again)."


def _list_groups(user: str) -> list[int]:
    """Return the groups of a user in the system's database. The groups of the current session may be older."""
    try:
        return os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except KeyError:
        return []


def _name_user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _name_group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
