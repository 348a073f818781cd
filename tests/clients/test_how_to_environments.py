"""Tests of how-to pages with what they say to install, and nothing else."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

import pytest

from container_runtime.file_lock import hold_lock
from container_runtime.images.wheelhouse import fetch_wheels
from tests.clients.page_blocks import CHECKOUT, DOCS, read_blocks, run_page
from tests.running_emulator import RunningEmulator
from tests.wheel import build_wheel

# What jobs run in is built there once, for the wheel at this place.
KEPT = CHECKOUT / ".cache" / "how-to-test"
# A file that runs in an image is not a command of the page, and some pages are for machines that have an engine.
RUN = [
    f"how_to/{path.name}"
    for path in sorted((DOCS / "how_to").glob("*.md"))
    if any(block.language in ("sh", "python") for block in read_blocks(f"how_to/{path.name}"))
    and path.stem != "run_in_a_container"
]
ALWAYS_THERE = {"cp", "curl", "eval", "export", "openssl", "python", "smdebug-emulator"}


def find_named(page: str) -> list[str]:
    """What a page says to install, of alternatives the first, without the wheel itself."""
    text = (DOCS / page).read_text(encoding="utf-8")
    named = [word.strip("'") for words in re.findall(r"`pip install ([^`\n]*)`", text) for word in words.split()]
    by_name: dict[str, str] = {}
    for requirement in named:
        by_name.setdefault(re.split(r"[<>=]", requirement)[0], requirement)
    return list(by_name.values())


@pytest.mark.parametrize("page", RUN)
def test_programs_of_a_page_come_with_python_or_are_named_on_it(page: str) -> None:
    text = "\n".join(block.text for block in read_blocks(page) if block.language == "sh").replace("\\\n", " ")
    first = re.findall(r"^(?:smdebug-emulator run -- )?([a-z][\w-]*)(?= |$)", text, re.MULTILINE)
    brought = {"aws": "awscli", "pytest": "pytest"}
    lacking = {name for name in set(first) - ALWAYS_THERE if brought.get(name) not in find_named(page)}
    assert lacking == set()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with hold_lock(KEPT / "lock"):
        cache = KEPT / "cache" / "smdebug-emulator"
        cache.mkdir(parents=True, exist_ok=True)
        if not (cache / "wheels").is_symlink():
            (cache / "wheels").symlink_to(CHECKOUT / ".cache" / "wheels")
        yield build_wheel(tmp_path_factory.mktemp("wheel") / "built")


@pytest.fixture(scope="module")
def emulator(start_emulator: Callable[..., RunningEmulator]) -> RunningEmulator:
    return start_emulator("process")


# Pages that name the same follow each other, and share an environment.
SORTED: list[str] = sorted(RUN, key=find_named)


@lru_cache(maxsize=1)
def install(wheel: Path, named: tuple[str, ...]) -> Path:
    """Make the environment anew with the wheel and what a page names; return the folder of its programs."""
    shutil.rmtree(KEPT / "venv", ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", KEPT / "venv"], check=True)
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = fetch_wheels(project["dependencies"] + project["optional-dependencies"]["emulator"], CHECKOUT / ".cache")
    programs = KEPT / "venv" / "bin"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(programs / "python")]
    command = [*pip, "install", "--quiet", "--no-compile", "--find-links", str(needed)]
    subprocess.run([*command, "--no-index", f"{wheel}[emulator]"], check=True)
    if named:
        pinned = "tests/clients/requirements-sagemaker-v3.txt" if "sagemaker>=3" in named else "constraints.txt"
        subprocess.run([*command, "--constraint", str(CHECKOUT / pinned), *named], check=True)
    return programs


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", SORTED)
def test_a_page_runs_with_what_it_names(page: str, wheel: Path, emulator: RunningEmulator, tmp_path: Path) -> None:
    programs = install(wheel, tuple(find_named(page)))
    folder = tmp_path / "reader"
    folder.mkdir()
    variables = {"PATH": f"{programs}:/usr/bin:/bin", "XDG_CACHE_HOME": str(KEPT / "cache"), "PYTHONPATH": ""}
    run_page(page, folder, emulator.state_dir, variables)
