"""Hostname resolution, called by distributed scripts before they start."""

import json
import os
import socket


def _wait_hostname_resolution() -> None:
    """Find the addresses of the job's hosts; here they have them from the start."""
    for host in json.loads(os.environ["SM_HOSTS"]):
        socket.gethostbyname(host)
