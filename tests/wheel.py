"""This project's wheel, built as pip builds it."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from emulator.console.build import CACHE, build_console

CHECKOUT = Path(__file__).parents[1]


def build_wheel(folder: Path) -> Path:
    """Build the wheel in ``folder`` from a copy of what it is made of: building leaves files beside its source.

    The packages that it is built with are those installed here; the tests of a release fetch them.
    """
    source = folder / "source"
    source.mkdir(parents=True)
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    content = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    for name in content["packages"]:
        # node_modules is a link to the cache, which may have been removed.
        ignored = shutil.ignore_patterns("__pycache__", "built", "node_modules")
        shutil.copytree(CHECKOUT / name, source / name, ignore=ignored)
    for path in CHECKOUT.iterdir():
        if path.suffix in {".toml", ".md"} or path.name in ("LICENSE", "hatch_build.py"):
            shutil.copy2(path, source)
    for name in content["force-include"]:
        shutil.copy2(CHECKOUT / name, source / name)
    # The console is built once of each state of its sources, not for each wheel of the tests.
    build_console()
    shutil.copytree(CACHE, source / ".cache" / "console", ignore=shutil.ignore_patterns("packages-*"))
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--check-build-dependencies"]
    subprocess.run([*command, "--wheel-dir", folder, source], check=True)
    return next(folder.glob("*.whl"))
