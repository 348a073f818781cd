"""Checks of the console's sources."""

import shutil
from pathlib import Path

import pytest

from emulator.console import build, check
from emulator.console.build import BuildError
from emulator.console.check import CheckError, check_sources, main

pytestmark = pytest.mark.slow


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of some sources, which the checks take for the sources: `make lint` checks all of them."""
    folder = tmp_path / "web"
    folder.mkdir()
    for path in (path for path in build.WEB.iterdir() if path.is_file()):
        shutil.copy(path, folder)
    for name in ("src/format.ts", "tests/format.test.ts"):
        (folder / name).parent.mkdir()
        shutil.copy(build.WEB / name, folder / name)
    monkeypatch.setattr(build, "WEB", folder)
    monkeypatch.setattr(check, "WEB", folder)
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache that has npm's packages, and no result of a check."""
    packages = build.install_packages(development=True)
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / packages.name).symlink_to(packages)
    return cache


def test_sources_that_passed_are_checked_again_only_when_they_change(
    sources: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first check alone: the others take seconds, and `make lint` runs them.
    monkeypatch.setattr(check, "_CHECKS", check._CHECKS[:1])
    check_sources(cache)
    with monkeypatch.context() as patch:
        patch.setattr(check, "find_node", lambda: pytest.fail("they were checked again"))
        check_sources(cache)
    (sources / "src" / "badly.ts").write_text("export const a = [1,2]\n")
    with pytest.raises(CheckError, match=r"(?s)^prettier in .*badly\.ts"):
        check_sources(cache)


@pytest.mark.nightly  # by day the others check the sources as they are, by `make lint`
@pytest.mark.parametrize(
    ("name", "text", "finder"),
    [
        ("loose.ts", "export const a: any = 1;\n", "eslint"),
        ("wrong.ts", 'export const a: number = "1";\n', "typescript"),
    ],
)
def test_each_check_finds_its_faults(
    sources: Path, cache: Path, name: str, text: str, finder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "_CHECKS", [each for each in check._CHECKS if each[0] == finder])
    (sources / "src" / name).write_text(text)
    with pytest.raises(CheckError, match=rf"(?s)^{finder} in .*{name}"):
        check_sources(cache)
    assert not (cache / "checked").exists()


@pytest.mark.usefixtures("sources")
def test_a_registry_that_cannot_be_reached_fails_in_ci_alone(
    cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "npm's packages cannot be installed: npm error code ECONNREFUSED"

    def refuse(_cache: Path, *, development: bool) -> Path:
        raise BuildError(f"{said} {development}")

    monkeypatch.setattr(check, "install_packages", refuse)
    monkeypatch.delenv("CI", raising=False)
    assert main([], cache) == 0
    assert capsys.readouterr().err == "npm's registry cannot be reached: the console's sources were not checked.\n"
    monkeypatch.setenv("CI", "1")
    assert main([], cache) == 1
    assert capsys.readouterr().err == f"{said} True\n"
    monkeypatch.delenv("CI")
    said = "npm error code EJSONPARSE"
    assert main([], cache) == 1, "what is wrong in the sources is an error everywhere"


@pytest.mark.nightly  # the test before this one has the registry's error in the words that npm has for it
def test_without_npm_they_are_skipped_with_a_sentence_but_fail_in_ci(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("npm_config_registry", "http://127.0.0.1:9/")
    monkeypatch.setenv("npm_config_fetch_retries", "0")
    monkeypatch.setenv("npm_config_cache", str(tmp_path / "npm"))
    monkeypatch.delenv("CI", raising=False)
    assert main([], tmp_path / "none") == 0
    assert capsys.readouterr().err == "npm's registry cannot be reached: the console's sources were not checked.\n"
    monkeypatch.setenv("CI", "1")
    assert main([], tmp_path / "none") == 1
    # What is wrong in the sources themselves is an error everywhere.
    monkeypatch.delenv("CI")
    (sources / "package.json").write_text("{")
    assert main([], tmp_path / "none") == 1
