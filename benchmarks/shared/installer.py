"""Installs packages with uv, in a fifth of pip's time, or with pip if uv fails.

Where packages come from is configured for pip. uv gets the same settings as options and environment variables.
"""

import ast
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

# Settings of pip, with uv's options. An option adds to those of the command line, a variable would not.
_OPTIONS = {
    "constraint": "--constraint",
    "extra-index-url": "--extra-index-url",
    "find-links": "--find-links",
    "index-url": "--index-url",
    "trusted-host": "--allow-insecure-host",
}
_VARIABLES = {
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
}
# From the weakest to the strongest, as `pip config list` names them.
_SECTIONS = ("global", "install", ":env:")


def install_packages(arguments: Sequence[str], python: str = sys.executable, *, progress: bool = False) -> None:
    """Install packages into the environment of an interpreter.

    Args:
        arguments: options and requirements that `uv pip install` and `pip install` both know.
        python: the interpreter.
        progress: whether the seconds are counted on standard error.

    Raises:
        RuntimeError: neither uv nor pip could install them; the text contains the output of both.
    """
    settings = read_settings(_run([sys.executable, "-m", "pip", "config", "list"]).stdout)
    options = [part for name, option in _OPTIONS.items() for each in settings.get(name, ()) for part in (option, each)]
    variables = {variable: settings[name][0] for name, variable in _VARIABLES.items() if settings.get(name)}
    # As pip does, uv is to take the best version of all indexes.
    uv = [sys.executable, "-m", "uv", "pip", "install", "--python", python, "--index-strategy", "unsafe-best-match"]
    by_uv = _run([*uv, *options, *arguments], {**variables, **os.environ}, progress)
    if not by_uv.returncode:
        return
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install"]
    by_pip = _run([*pip, *arguments], None, progress)
    if by_pip.returncode:
        raise RuntimeError(f"uv could not install them:\n{by_uv.stderr}\nnor could pip:\n{by_pip.stderr}")


def read_settings(listed: str) -> dict[str, list[str]]:
    """Return the values of each setting for `pip install`.

    Args:
        listed: output of `pip config list`: lines such as ``global.index-url='https://...'``.
    """
    settings: dict[str, list[str]] = {}
    lines = [line.partition("=") for line in listed.splitlines()]
    for section in _SECTIONS:
        for key, _, value in lines:
            if key.startswith(f"{section}."):
                settings[key.removeprefix(f"{section}.")] = ast.literal_eval(value).split()
    return settings


def _run(
    command: Sequence[str], environment: Mapping[str, str] | None = None, progress: bool = False
) -> subprocess.CompletedProcess[str]:
    started = time.monotonic()
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while True:
                try:
                    output, errors = process.communicate(timeout=1)
                    break
                except subprocess.TimeoutExpired:
                    if progress:
                        sys.stderr.write(f"\r  {time.monotonic() - started:.0f} s")
                        sys.stderr.flush()
        finally:
            process.kill()  # unless it has ended
    if progress:
        sys.stderr.write("\r\033[K")
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


if __name__ == "__main__":
    try:
        install_packages(sys.argv[1:], progress=sys.stderr.isatty())
    except RuntimeError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
