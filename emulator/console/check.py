"""Checks of the console's sources, run by ``make lint``."""

import argparse
import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from emulator.console.build import CACHE, WEB, BuildError, find_node, install_packages, link_packages

_CHECKS = (
    ("prettier", "bin/prettier.cjs", "--check", "--log-level", "warn", "."),
    ("eslint", "bin/eslint.js", "--max-warnings", "0", "src", "tests"),
    ("typescript", "bin/tsc", "--noEmit"),
)
_UNREACHABLE = re.compile(
    r"npm error code (EAI_AGAIN|ECONN\w+|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|ETIMEDOUT|ERR_SOCKET\w+)"
)


class CheckError(Exception):
    """A check of the sources failed; the text is what it printed."""


def check_sources(cache: Path = CACHE) -> None:
    """Check format, lint rules and types, unless these same sources passed before.

    Raises:
        BuildError: node or npm's packages are missing.
        CheckError: a check failed.
    """
    passed = cache / "checked"
    key = _hash_inputs()
    if passed.is_file() and passed.read_text() == key:
        return
    link_packages(install_packages(cache, development=True))
    for package, script, *arguments in _CHECKS:
        _run(package, script, *arguments)
    partial = passed.with_name(f"checked.{os.getpid()}")
    partial.write_text(key)
    partial.replace(passed)


def format_sources() -> None:
    """Format the sources with Prettier.

    Raises:
        BuildError: node or npm's packages are missing.
        CheckError: one of them cannot be parsed.
    """
    link_packages(install_packages(development=True))
    _run("prettier", "bin/prettier.cjs", "--write", "--log-level", "warn", ".")


def _run(package: str, script: str, *arguments: str) -> None:
    node, _ = find_node()
    command = [str(node), f"node_modules/{package}/{script}", *arguments]
    done = subprocess.run(command, cwd=WEB, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CheckError(f"{package} in {WEB}:\n{done.stdout}{done.stderr}".strip())


def _hash_inputs() -> str:
    digest = hashlib.sha256(repr(_CHECKS).encode())
    for path in sorted(WEB.rglob("*")):
        name = path.relative_to(WEB)
        if name.parts[0] != "node_modules" and path.is_file():
            content = path.read_bytes()
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def main(arguments: Sequence[str] | None = None, cache: Path = CACHE) -> int:
    """Check, or with --format write; where npm cannot be reached a check is skipped, but fails in CI."""
    parser = argparse.ArgumentParser(prog="python -m emulator.console.check", description=__doc__)
    parser.add_argument("--format", action="store_true", help="format the sources in place of checking them")
    writes = parser.parse_args(arguments).format
    try:
        if writes:
            format_sources()
        else:
            check_sources(cache)
    except CheckError as error:
        hint = "" if writes else "\n`make console-format` mends what Prettier found."
        sys.stderr.write(f"{error}{hint}\n")
        return 1
    except BuildError as error:
        if writes or os.environ.get("CI") or not _UNREACHABLE.search(str(error)):
            sys.stderr.write(f"{error}\n")
            return 1
        sys.stderr.write("npm's registry cannot be reached: the console's sources were not checked.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
