"""Distributed training on all hosts of a job, for scripts."""

import socket
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from rules_images.training.xgboost.built_in_algorithm.hosts import Hosts, choose_port, join, meet


def wait_hostname_resolution(sm_hosts: Sequence[str]) -> None:
    """Resolve the names of the hosts. In the emulator they have addresses from the start.

    Raises:
        OSError: a host has no address.
    """
    for host in sm_hosts:
        socket.gethostbyname(host)


def rabit_run(
    exec_fun: Callable[..., Any],
    args: dict[str, Any],
    include_in_training: bool,
    hosts: Sequence[str],
    current_host: str,
    first_port: int | None = None,
    second_port: int | None = None,
    update_rabit_args: bool = False,
) -> None:
    """Call a function on each participating host, connected so that all of them train one model.

    Args:
        exec_fun: function that trains the model.
        args: its arguments, by name.
        include_in_training: whether this host has rows to train with; one that has none ends here.
        hosts: all of the job's.
        current_host: this one.
        first_port: the port at which they find each other.
        second_port: the one at which those that take part do.
        update_rabit_args: whether the function is also told `is_master`: this host writes the model.

    Raises:
        JobError: no host has rows.
    """
    port = first_port or choose_port()
    together, _ = meet(Hosts(tuple(sorted(hosts)), current_host), port, bool(include_in_training))
    if not include_in_training:
        raise SystemExit(0)
    arguments = {**args, "is_master": together.is_first} if update_rabit_args else args
    with join(together, second_port or port + 1) if len(together.names) > 1 else nullcontext():
        exec_fun(**arguments)
