"""Hooks of the build: the console's page in the wheel, and links of the project in the metadata.

An editable checkout gets the page from ``make``.
"""

import importlib.util
import os
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

URL_VARIABLE = "SMDEBUG_EMULATOR_PROJECT_URL"
"""Variable of the address at which a release is published, which no file of the project knows."""

_PAGES = {"Homepage": "", "Repository": "", "Issues": "/issues"}


class LinksHook(MetadataHookInterface):
    """Called by hatchling for each distribution."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the project's links: those of the variable, or those that the sdist was built with."""
        if given := os.environ.get(URL_VARIABLE, "").rstrip("/"):
            metadata["urls"] = {name: f"{given}{page}" for name, page in _PAGES.items()}
            return
        described = Path(self.root, "PKG-INFO")
        if described.exists():
            urls = HeaderParser().parsestr(described.read_text(encoding="utf-8")).get_all("Project-URL", [])
            metadata["urls"] = dict(each.split(", ", 1) for each in urls)


class ConsoleBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling for each wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page, and have it put into the wheel."""
        if self.target_name != "wheel" or version == "editable":
            return
        path = Path(self.root) / "emulator" / "console" / "build.py"
        spec = importlib.util.spec_from_file_location("console_build", path)
        assert spec is not None
        assert spec.loader is not None
        build = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(build)
        page = build.build_console(build.CACHE / "wheel")
        build_data["force_include"][str(page)] = "emulator/console/built"
