"""Build hook of the wheel, which adds the console's page.

An editable checkout gets the page from ``make``.
"""

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


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
