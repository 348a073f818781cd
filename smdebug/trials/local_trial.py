"""Trials of runs in local folders."""

import os
from collections.abc import Sequence
from pathlib import Path

from smdebug.logger import get_logger
from smdebug.reading.run_files import LocalRunFiles
from smdebug.reading.run_steps import DEFAULT_POLL_INTERVAL_S
from smdebug.storage.s3 import get_path_text
from smdebug.trials.trial import Trial


class LocalTrial(Trial):
    """A run in a local folder; other arguments and errors as in `Trial`.

    Args:
        name: the trial's name.
        dirname: the folder; `~` is expanded.
        parallel: without effect.
        check: without effect: checksums are always verified.
        index_mode: without effect: a run is always read by its index.

    Attributes:
        trial_dir: the folder, as `path`.
    """

    def __init__(
        self,
        name: str | None,
        dirname: str | os.PathLike[str],
        range_steps: Sequence[int | None] | None = None,
        parallel: bool = True,  # noqa: ARG002 -- smdebug's signature
        check: bool = False,  # noqa: ARG002 -- smdebug's signature
        index_mode: bool = True,  # noqa: ARG002 -- smdebug's signature
        cache: bool = False,
        *,
        poll_interval_s: float = DEFAULT_POLL_INTERVAL_S,
    ) -> None:
        dirname = get_path_text(dirname)
        folder = Path(dirname).expanduser()
        self.trial_dir = str(folder)
        if not folder.is_dir():
            get_logger().warning("There is no folder %s yet: the trial waits for a hook to create it.", folder)
        super().__init__(
            LocalRunFiles(folder),
            self.trial_dir,
            # As in smdebug, a path with a trailing slash has an empty last component.
            dirname.rpartition("/")[2] if name is None else name,
            range_steps=range_steps,
            cache=cache,
            poll_interval_s=poll_interval_s,
        )
