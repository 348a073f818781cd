"""Program in a shell that has the variables of ``env``."""

import os
import subprocess
import sys
from pathlib import Path

from sdk_compat.environment import prepare_environment


def run_in_shell_of_env(source: str, folder: Path) -> str:
    """Run Python source with an empty home, for an emulator that nobody asks, and return what it prints."""
    variables = prepare_environment("http://127.0.0.1:4580", {}, folder=folder / "clients")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", source],
        env={**variables, "HOME": str(folder), "PATH": os.environ["PATH"], "SAGEMAKER_SUPPRESS_V2_WARNING": "1"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
