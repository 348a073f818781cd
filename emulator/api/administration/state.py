"""``/_emulator/reset`` and ``/_emulator/state``: state reset, export and import."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, jsonify, request, send_file

from emulator.api import PREFIX
from emulator.exceptions import AwsError
from emulator.state.archive import StagedImport


def build_state_pages(
    export: Callable[[Path], None],
    stage_import: Callable[[Path], StagedImport],
    count: Callable[[], dict[str, int]],
    reset: Callable[[str, bool], tuple[int, bool]],
    undo: Callable[[], tuple[StagedImport, int]],
) -> Blueprint:
    """Build the routes.

    Args:
        export: writes the archive to a path. It raises an AwsError while jobs run.
        stage_import: takes the path of an archive and returns the import, whose name ``lastImport`` in the health
            response shows once the import is done. It raises an AwsError while jobs run or another state is being
            restored, or if the file is not an archive of the state.
        count: counts what a reset would delete, by kind.
        reset: takes a prefix of job names, or an empty string for everything, and whether to keep the deleted state for
            a day. It returns the number of deleted jobs, and whether the state was kept. If the state cannot be kept,
            it deletes nothing and raises an AwsError.
        undo: restores the state that was kept last. It returns the import, and the time of the reset in epoch
            milliseconds. It raises an AwsError if it cannot restore the state.
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
            return jsonify(_describe(stage_import(Path(target.name)))), 202

    @pages.get(f"{PREFIX}reset")
    def count_state() -> Any:
        return jsonify(count())

    @pages.post(f"{PREFIX}reset")
    def reset_state() -> Any:
        prefix, keep = request.args.get("jobNamePrefix", ""), request.args.get("keep", "0")
        if "jobNamePrefix" in request.args and not prefix:
            return jsonify(error="jobNamePrefix is empty: give a prefix, or leave it out to forget everything."), 400
        if keep not in ("0", "1"):
            return jsonify(error=f"keep is {keep[:40]!r}: use 0 or 1."), 400
        forgotten, kept = reset(prefix, keep == "1")
        return jsonify(jobs=forgotten, kept=kept)

    @pages.post(f"{PREFIX}reset/undo")
    def undo_reset() -> tuple[Any, int]:
        staged, forgotten_ms = undo()
        return jsonify(_describe(staged) | {"forgottenMs": forgotten_ms}), 202

    return pages


def _describe(staged: StagedImport) -> dict[str, Any]:
    return {"import": staged.name, "previousImport": staged.previous}
