"""Container back ends available for benchmarks."""

import os
import subprocess


def back_ends() -> list[str]:
    """Return the back ends that BACK_ENDS names; else ``process``, and ``docker`` if a container engine responds."""
    if named := os.environ.get("BACK_ENDS"):
        return named.split(",")
    try:
        engine = subprocess.run(["docker", "info"], capture_output=True, check=False, timeout=30).returncode == 0
    except FileNotFoundError:
        engine = False
    return ["process", "docker"] if engine else ["process"]
