"""Cost of installing the extra ``emulator``, and of each of its requirements.

What goes is the requirement itself with all that nothing else requires. The packages are downloaded first, so the
seconds are those of pip alone.
"""

import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

ROOT = Path(__file__).parents[2]
LEAST_MB = 0.5
_LIST = """
import json
from importlib.metadata import distributions
found = {}
for each in distributions():
    sizes = [path.locate().stat().st_size for path in each.files or () if path.locate().is_file()]
    found[each.metadata["Name"]] = {"bytes": sum(sizes), "requires": each.requires or []}
print(json.dumps(found))
"""


def measure() -> Iterator[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    direct = [*project["dependencies"], *project["optional-dependencies"]["emulator"]]
    with tempfile.TemporaryDirectory() as temporary:
        wheels, environment = Path(temporary, "wheels"), Path(temporary, "environment")
        required = Path(temporary, "requirements.txt")
        required.write_text("\n".join(direct), encoding="utf-8")
        lists = ["--constraint", str(ROOT / "constraints.txt"), "--requirement", str(required)]
        _run(sys.executable, "-m", "pip", "download", "--quiet", "--prefer-binary", "--dest", str(wheels), *lists)
        _run(sys.executable, "-m", "venv", "--without-pip", str(environment))
        python = environment / "bin" / "python"
        began = time.monotonic()
        pip = ["-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--find-links", str(wheels)]
        _run(sys.executable, *pip, *lists)
        seconds = time.monotonic() - began
        installed: dict[str, Any] = json.loads(_run(str(python), "-c", _LIST))
        downloaded: dict[str, int] = {
            canonicalize_name(parse_wheel_filename(path.name)[0]): path.stat().st_size for path in wheels.glob("*.whl")
        }
    known: dict[str, Any] = {canonicalize_name(name): each for name, each in installed.items()}
    disk: dict[str, int] = {name: int(each["bytes"]) for name, each in known.items()}
    yield f"all: download {_sum(downloaded)}, disk {_sum(disk)}, pip {seconds:.0f} s, {len(known)} packages"
    whole = find_closure(direct, known)
    lacking = {each: whole - find_closure([other for other in direct if other != each], known) for each in direct}
    for each in sorted(direct, key=lambda each: -sum(disk[name] for name in lacking[each])):
        gone = lacking[each]
        if sum(disk[name] for name in gone) >= LEAST_MB * 1e6:
            fetched, kept = ({name: found.get(name, 0) for name in gone} for found in (downloaded, disk))
            listed = ", ".join(sorted(gone))
            yield f"without {Requirement(each).name}: {_sum(fetched)} and {_sum(kept)} less: {listed}"


def find_closure(direct: list[str], known: Mapping[str, Any]) -> set[str]:
    """Return the names of the packages that requirements need, those of their extras included."""
    found: set[tuple[str, str]] = set()
    waiting = [Requirement(each) for each in direct]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if name not in known or (name, extra) in found:
                continue
            found.add((name, extra))
            needed = map(Requirement, known[name]["requires"])
            waiting += [each for each in needed if each.marker is None or each.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


def _sum(sizes: Mapping[str, int]) -> str:
    return f"{sum(sizes.values()) / 1e6:.1f} MB"


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
