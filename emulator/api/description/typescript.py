"""TypeScript types of the API's answers, written for the console."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from emulator.api.description.openapi import build_document
from emulator.console.build import WEB, BuildError, find_node, install_packages

TYPES = WEB / "src" / "api_types.ts"
COMMAND = "python -m emulator.api.description.typescript"
_HEADER = f"// Types of the API's answers, made of its OpenAPI document by `{COMMAND}`: do not edit.\n\n"


def render_types() -> str:
    """Render the types with the npm package openapi-typescript.

    Raises:
        BuildError: Node or the npm packages are missing, or the document cannot be converted.
    """
    node, _ = find_node()
    tool = install_packages(development=True) / "node_modules" / "openapi-typescript" / "bin" / "cli.js"
    # The version and the paths do not affect the types.
    document = {**build_document("0"), "paths": {}}
    with tempfile.TemporaryDirectory(prefix="openapi-") as folder:
        source, target = Path(folder) / "openapi.json", Path(folder) / "types.ts"
        source.write_text(json.dumps(document))
        command = [str(node), str(tool), str(source), "--root-types", "--root-types-no-schema-prefix"]
        done = subprocess.run(
            [*command, "--output", str(target)], cwd=folder, capture_output=True, text=True, timeout=120, check=False
        )
        if done.returncode:
            raise BuildError(f"The OpenAPI document cannot be made into types:\n{done.stdout}{done.stderr}".strip())
        return _HEADER + target.read_text().partition("*/\n\n")[2]


def main() -> int:
    """Write the types to the console's sources and return the exit code."""
    try:
        TYPES.write_text(render_types())
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
