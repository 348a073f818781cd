"""Commands run as a user who may not write root's files."""

import os
import shutil

import pytest

NOBODY = 65534
# Python may be installed below a folder that only root can read: reading is allowed, and nothing else.
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)

needs_other_user = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="only root, with setpriv(1), becomes another user"
)
