"""Test of scripts of ``--init-folder`` that run when the emulator is to end."""

import logging
from pathlib import Path

import psutil
import pytest

from emulator.cli.service.init_folder import list_scripts, run_scripts
from emulator.settings import Settings
from tests.waiting import wait_until


def test_a_script_that_hangs_is_stopped_with_what_it_has_started(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    pids = tmp_path / "pids"
    (tmp_path / "1-runs.sh").write_text("echo done")
    (tmp_path / "2-hangs.sh").write_text(f"sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait")
    (tmp_path / "3-later.sh").write_text(f"touch {tmp_path / 'ran'}")
    scripts = list_scripts(tmp_path)
    run_scripts(scripts, Settings(state_dir=tmp_path / "state"), pids.exists)
    assert [record.message for record in caplog.records] == [
        f"The script {scripts[0]} of --init-folder has run.\ndone",
        f"The script {scripts[1]} of --init-folder was stopped: the emulator ends.",
    ]
    assert not (tmp_path / "ran").exists()
    started = [int(pid) for pid in pids.read_text().split()]
    wait_until(lambda: not any(map(psutil.pid_exists, started)), started)
