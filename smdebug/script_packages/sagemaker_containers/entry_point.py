"""Hostname resolution, called by distributed scripts before they start."""

import json
import os
import socket


def _wait_hostname_resolution() -> None:
    """Resolve the names of the job's hosts. In the emulator they have addresses from the start."""
    for host in json.loads(os.environ["SM_HOSTS"]):
        socket.gethostbyname(host)
