"""Site of the documentation of all versions, each in a folder of its own."""

import json
from html import escape
from pathlib import Path

from packaging.version import InvalidVersion, Version

_INDEX = """<!doctype html>
<meta charset="utf-8">
<title>smdebug-emulator</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
<a href="{version}/index.html">Documentation of version {version}</a>
"""


def list_versions(site: Path) -> list[str]:
    """Return the versions whose documentation a site has, the newest first."""
    found = []
    for path in site.iterdir():
        try:
            version = Version(path.name)
        except InvalidVersion:
            continue
        if (path / "index.html").is_file():
            found.append((version, path.name))
    return [name for _, name in sorted(found, reverse=True)]


def write_versions(site: Path) -> None:
    """Write what the pages' list of versions is made of, and an index that leads to the newest version.

    The file is in the form of mike, which Material reads beside the folder of the version that is shown.
    """
    versions = list_versions(site)
    aliases = {versions[0]: ["latest"]}
    listed = [{"version": each, "title": each, "aliases": aliases.get(each, [])} for each in versions]
    (site / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    (site / "index.html").write_text(_INDEX.format(version=escape(versions[0])), encoding="utf-8")
