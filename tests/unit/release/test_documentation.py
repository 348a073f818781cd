"""Tests of the site of all versions' documentation."""

import json
from pathlib import Path

from release.documentation import list_versions, write_versions


def test_versions_are_listed_newest_first(tmp_path: Path) -> None:
    for name in ("0.9.0", "0.10.0", "0.10.0rc1", "pictures", "0.11.0"):
        (tmp_path / name).mkdir()
        if name != "0.11.0":  # its documentation is not there
            (tmp_path / name / "index.html").touch()
    write_versions(tmp_path)
    assert list_versions(tmp_path) == ["0.10.0", "0.10.0rc1", "0.9.0"]
    listed = json.loads((tmp_path / "versions.json").read_text())
    assert [(each["version"], each["aliases"]) for each in listed] == [
        ("0.10.0", ["latest"]),
        ("0.10.0rc1", []),
        ("0.9.0", []),
    ]
    assert "url=0.10.0/index.html" in (tmp_path / "index.html").read_text()
