"""Development server of the console, run by ``make console-dev``."""

import argparse
import os
import sys
from typing import NoReturn
from urllib.parse import urlsplit

from emulator.console import ASSETS, CONSOLE
from emulator.console.build import WEB, BuildError, find_node, install_packages, link_packages
from emulator.console.page import render_page


def main() -> NoReturn:
    """Serve the page from its sources, rebuilt when they change, until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m emulator.console.dev", description=__doc__)
    parser.add_argument(
        "--emulator", default="http://127.0.0.1:4580", metavar="URL", type=_parse_origin, help="which answers the page"
    )
    parser.add_argument("--port", type=_parse_port, default=4581, help="of the page, on 127.0.0.1")
    arguments = parser.parse_args()
    try:
        node, _ = find_node()
        link_packages(install_packages(development=True))
    except BuildError as error:
        sys.exit(str(error))
    environment = {
        **os.environ,
        "CONSOLE_EMULATOR": arguments.emulator,
        "CONSOLE_PORT": str(arguments.port),
        "CONSOLE_PATH": CONSOLE,
        "CONSOLE_ASSETS": ASSETS,
        "CONSOLE_PAGE": render_page("main.js", "main.css"),
    }
    # In place of this process: whatever ends it ends the server.
    os.chdir(WEB)
    os.execve(node, [str(node), "dev.mjs"], environment)  # noqa: S606 -- a path of our own, and no shell


def _parse_origin(text: str) -> str:
    """Return the origin of an emulator's address.

    >>> _parse_origin("http://127.0.0.1:4580/console")
    'http://127.0.0.1:4580'
    """
    parts = urlsplit(text)
    if parts.scheme != "http" or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address such as http://127.0.0.1:4580.")
    return f"http://{parts.netloc}"


def _parse_port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to 65535.")
    return int(text)


if __name__ == "__main__":
    main()
