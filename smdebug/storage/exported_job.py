"""Refusal of an exported job's folder in place of a run."""

from pathlib import Path

from smdebug.exceptions import SMDebugValueError


def refuse_exported_job(path: str, kind: str, part: str) -> None:
    """Raise SMDebugValueError if a folder is an exported job; its message names the folder to give.

    Args:
        path: the folder.
        kind: what the folder should be, such as "run".
        part: the name of such folders in an exported job, such as "debug-output".
    """
    folder = Path(path).expanduser()
    if (folder / "job.json").is_file() and (objects := folder / "objects").is_dir():
        found = " or ".join(sorted(map(str, objects.rglob(part))))
        advice = f": give {found}." if found else f", and the job in {folder} has none."
        raise SMDebugValueError(f"A folder of smdebug-emulator export is not a {kind}{advice}")
