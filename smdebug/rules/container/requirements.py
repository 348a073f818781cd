"""Installation of a custom rule's requirements.txt before its import."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from smdebug.exceptions import SMDebugError
from smdebug.job_warnings import REQUIREMENTS_NOT_INSTALLED, warn_user
from smdebug.logger import get_logger
from smdebug.rules.container.custom_source import REQUIREMENTS

# Without a network pip should fail quickly. Settings in the container's environment take precedence.
_DEFAULTS = {"PIP_RETRIES": "1", "PIP_TIMEOUT": "15", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
_SAID_LINES = 6
REQUIREMENTS_FOLDER = ".requirements"


def install_requirements(sources: Iterable[Path], folder: Path) -> None:
    """Install the requirements.txt beside a rule's files into a separate folder on sys.path.

    Paths in the file are relative to it, so that it can name wheels beside it. Without such a file this does nothing.

    Args:
        sources: the rule's .py files.
        folder: the folder that contains all of them.

    Raises:
        SMDebugError: pip failed; the message contains the last lines of its output.
    """
    files = dict.fromkeys(parent / REQUIREMENTS for parent in (folder, *(source.parent for source in sources)))
    target = folder / REQUIREMENTS_FOLDER
    for file in files:
        if not file.is_file():
            continue
        get_logger().info("Installing the rule's %s.", REQUIREMENTS)
        command = [sys.executable, "-m", "pip", "install", "--target", str(target), "--requirement", str(file)]
        done = subprocess.run(
            command,
            cwd=file.parent,
            env={**_DEFAULTS, **os.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            said = "\n".join(done.stdout.strip().splitlines()[-_SAID_LINES:])
            failure = f"The rule's {REQUIREMENTS} could not be installed. pip said:\n{said}"
            warn_user(REQUIREMENTS_NOT_INSTALLED, "%s", failure)
            raise SMDebugError(failure)
        # The folder comes first on the path, so that the rule gets the versions that it requires.
        sys.path.insert(0, str(target))
