"""Tests of the checks before a release."""

import subprocess
from pathlib import Path

import pytest

from release import __main__ as release

CHANGELOG = "# Changelog\n\n## 0.2.0\n\n- New.\n\n## 0.1.0 (unreleased)\n\n- First.\n"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("")
    git(tmp_path, "add", "file")
    git(tmp_path, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "First")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)


@pytest.mark.parametrize(("version", "text"), [("0.2.0", "- New.\n"), ("0.1.0", "- First.\n")])
def test_the_section_of_a_version_is_taken_from_the_changelog(version: str, text: str) -> None:
    assert release.read_changes(version, CHANGELOG) == text


@pytest.mark.parametrize("version", ["0.3.0", "0.1", "0.2"])
def test_a_version_without_a_section_is_refused(version: str) -> None:
    with pytest.raises(release.ReleaseError, match="has no section"):
        release.read_changes(version, CHANGELOG)


def test_the_version_is_that_of_the_tag(checkout: Path) -> None:
    git(checkout, "tag", "vague")
    with pytest.raises(release.ReleaseError, match="has none as tags of versions"):
        release.find_version()
    git(checkout, "tag", "v0.2.0")
    assert release.find_version() == "0.2.0"
    git(checkout, "tag", "v0.3.0")
    with pytest.raises(release.ReleaseError, match=r"has 0\.2\.0, 0\.3\.0 as tags of versions"):
        release.find_version()


def test_what_git_does_not_know_is_in_no_release(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    (checkout / "emulator").mkdir()
    (checkout / "emulator" / "__init__.py").write_text('"""Emulator."""\n\nVERSION = "0.1.0"\n')
    git(checkout, "add", "emulator")
    (checkout / "secret").write_text("")
    copy = tmp_path_factory.mktemp("copy")
    release.copy_source(copy, "0.2.0rc1")
    assert sorted(path.name for path in copy.iterdir()) == ["emulator", "file"]
    assert 'VERSION = "0.2.0rc1"\n' in (copy / "emulator" / "__init__.py").read_text()


def test_changes_that_are_not_committed_are_refused(checkout: Path) -> None:
    (checkout / "other").write_text("")
    with pytest.raises(release.ReleaseError, match="has changes"):
        release.find_version()


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(release.ReleaseError, match="exists: remove it"):
        release.make_release(tmp_path, tmp_path / "python", rehearse=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url", ["", "project", "http://project.example/a", "https://", "https://a b/c", "https://a/b?c"]
)
def test_a_release_without_the_address_of_the_project_is_refused(url: str) -> None:
    with pytest.raises(release.ReleaseError, match="URL=https://HOST"):
        release.check_url(url, rehearse=False)


def test_a_rehearsal_needs_no_address() -> None:
    release.check_url("", rehearse=True)
    release.check_url("https://project.example/owner/emulator", rehearse=False)


def test_the_build_reads_the_variable_that_the_release_sets() -> None:
    assert f'URL_VARIABLE = "{release.URL_VARIABLE}"' in (release.ROOT / "hatch_build.py").read_text(encoding="utf-8")
