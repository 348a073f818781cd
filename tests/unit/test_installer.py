"""Tests of the installer of environments."""

import os
import zipfile
from pathlib import Path

import pytest

from benchmarks.shared.installer import install_packages, read_settings


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package in a folder where only pip's configuration says to look."""
    folder = tmp_path / "found"
    folder.mkdir()
    metadata = "of_this_test-1.0.dist-info"
    with zipfile.ZipFile(folder / "of_this_test-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("of_this_test.py", "")
        wheel.writestr(f"{metadata}/METADATA", "Metadata-Version: 2.1\nName: of-this-test\nVersion: 1.0\n")
        wheel.writestr(f"{metadata}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{metadata}/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path


def test_uv_looks_where_pip_does(found: Path) -> None:
    install_packages(["--no-index", "--no-deps", "--target", str(found / "into"), "of-this-test"])
    assert (found / "into/of_this_test-1.0.dist-info/INSTALLER").read_text() == "uv"


@pytest.mark.nightly
def test_pip_installs_what_uv_cannot(found: Path) -> None:
    options = ["--progress-bar", "off"]  # uv has no such option
    install_packages([*options, "--no-index", "--no-deps", "--target", str(found / "into"), "of-this-test"])
    assert (found / "into/of_this_test-1.0.dist-info/INSTALLER").read_text() == "pip\n"


@pytest.mark.nightly
def test_both_say_why_a_package_cannot_be_installed(found: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)uv could not.*no-such-package.*nor could pip.*no-such-package"):
        install_packages(["--no-index", "--target", str(found / "into"), "no-such-package"])


def test_a_variable_goes_before_the_configuration_file() -> None:
    listed = "\n".join(
        [
            "global.index-url='https://first.example'",
            "install.index-url='https://second.example'",
            "download.index-url='https://third.example'",
            "global.find-links='\\n/one\\n/two'",
            ":env:.find-links='/three'",
        ]
    )
    assert read_settings(listed) == {"index-url": ["https://second.example"], "find-links": ["/three"]}
