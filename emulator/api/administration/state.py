"""``/_emulator/reset`` and ``/_emulator/state``: state reset, export and import."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, jsonify, request, send_file

from emulator.api import PREFIX
from emulator.exceptions import AwsError


def build_state_pages(
    export: Callable[[Path], None],
    stage_import: Callable[[Path], str],
) -> Blueprint:
    """Build the routes.

    Args:
        export: writes the archive to a path. It raises an AwsError while jobs run.
        stage_import: takes the path of an archive and returns the name of the import, which ``lastImport`` in the
            health response shows once the import is done. It raises an AwsError while jobs run, or if the file is not
            an archive of the state.
    """
    pages = Blueprint("state", __name__)

    @pages.errorhandler(AwsError)
    def refuse(error: AwsError) -> tuple[Any, int]:
        return jsonify(error=error.message), error.status

    @pages.get(f"{PREFIX}state")
    def export_state() -> Response:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "smdebug-emulator-state.tar"
            export(path)
            # The open file can be read after its folder was deleted.
            return send_file(path.open("rb"), "application/x-tar", as_attachment=True, download_name=path.name)

    @pages.post(f"{PREFIX}state")
    def import_state() -> tuple[Any, int]:
        with tempfile.NamedTemporaryFile() as target:
            while chunk := request.stream.read(1024 * 1024):
                target.write(chunk)
            target.flush()
            return jsonify({"import": stage_import(Path(target.name))}), 202

    return pages
