"""Development server of the console, as ``make console-dev`` runs it: ``python -m emulator.console.dev``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

from emulator.console.build import WEB, BuildError, find_node, install_packages, link_packages
from emulator.console.page import ASSETS, CONSOLE, render_page


def main() -> int:
    """Serve the page from its sources, rebuilt when they change, until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m emulator.console.dev", description=__doc__)
    parser.add_argument("--emulator", default="http://127.0.0.1:4580", metavar="URL", help="which answers the page")
    parser.add_argument("--port", type=int, default=4581, help="of the page, on 127.0.0.1")
    arguments = parser.parse_args()
    try:
        node, _ = find_node()
        link_packages(install_packages(development=True))
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    environment = {
        **os.environ,
        "CONSOLE_EMULATOR": arguments.emulator,
        "CONSOLE_PORT": str(arguments.port),
        "CONSOLE_PATH": CONSOLE,
        "CONSOLE_ASSETS": ASSETS,
        "CONSOLE_PAGE": render_page("main.js", "main.css"),
    }
    try:
        return subprocess.run([str(node), "dev.mjs"], cwd=WEB, env=environment, check=False).returncode
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
