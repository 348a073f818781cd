"""Launch of a script's processes by Open MPI, as AWS's training toolkit does it.

The toolkit calls an mpirun of Open MPI 4, and has an SSH server run on each host, a single one as well. Here Open MPI 5
starts the processes of one host, without SSH.
"""
# ruff: noqa: SLF001 -- the toolkit's methods that differ are its private ones

import os
import re
import tempfile
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

# Open MPI 5 reads a word after one dash as single letters, but for these.
_LONG_OPTION = re.compile(r"-[a-z][a-z-]{2,}")
_AS_IT_WAS = frozenset({"-mca", "-gmca"})


def adapt_launcher(mpi: Any) -> None:
    """Make the toolkit's module ``mpi`` start the processes of one host without SSH; several hosts stay as they are."""
    runner: Any = mpi.MasterRunner
    setup, create, start_script = runner._setup, runner._create_command, mpi.process.ProcessRunner._create_command

    def set_up(self: Any) -> None:
        if len(self._hosts) > 1:
            setup(self)
        else:
            # The toolkit gives other hosts half a minute to notice the end.
            mpi.time = SimpleNamespace(time=time.time, sleep=lambda _seconds: None)
            # Open MPI does not start for a user without one.
            os.environ.setdefault("HOME", tempfile.gettempdir())

    def create_command(self: Any) -> list[str]:
        command, script = create(self), start_script(self)
        return [*fit_options(command[: -len(script)], self._hosts), *script]

    runner._setup, runner._create_command = set_up, create_command


def fit_options(command: Sequence[str], hosts: Sequence[str]) -> list[str]:
    """Return the toolkit's mpirun command in Open MPI 5's words.

    Args:
        command: mpirun and its options, without the program that it starts.
        hosts: names of the job's hosts. Of a single one the processes start here, whether its name resolves or not.
    """
    fitted: list[str] = []
    for word in command:
        previous = fitted[-1] if fitted else ""
        if word.startswith("LD_PRELOAD=") and word.endswith(".py"):
            # In place of the toolkit's C extension, which no process needs that finds its host here.
            fitted.pop()
        elif previous == "--host" and len(hosts) == 1:
            fitted.append(word.replace(hosts[0], "localhost", 1))
        else:
            fitted.append(f"-{word}" if _LONG_OPTION.fullmatch(word) and word not in _AS_IT_WAS else word)
    return fitted
