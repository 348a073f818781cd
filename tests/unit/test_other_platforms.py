"""Tests of the library and the commands without modules that Windows lacks."""

import subprocess
import sys
import textwrap
from pathlib import Path

# What Python on Windows lacks.
WITHOUT = """
import os, sys
for name in ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty"):
    sys.modules[name] = None
for name in ("fork", "register_at_fork", "geteuid", "getuid", "setsid", "killpg", "mkfifo", "getpgid"):
    delattr(os, name)
"""


def run_without(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    text = WITHOUT + textwrap.dedent(program)
    return subprocess.run(
        [sys.executable, "-c", text], check=False, capture_output=True, text=True, timeout=120, cwd=folder
    )


def test_commands_say_where_the_service_runs(tmp_path: Path) -> None:
    done = run_without(
        f"""
        sys.platform = "darwin"
        sys.argv = ["smdebug-emulator", "start", "--state-dir", {str(tmp_path)!r}]
        from emulator.__main__ import main
        main()
        """,
        tmp_path,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith("The emulator runs on Linux. Start it in a container: docker run")
    assert len(done.stderr.splitlines()) == 1


def test_clients_and_fixtures_can_be_imported(tmp_path: Path) -> None:
    done = run_without(
        """
        import sdk_compat, sdk_compat.environment, sdk_compat.pytest_plugin, sdk_compat.notebook
        import emulator.cli.jobs.jobs, emulator.cli.service.clients, emulator.cli.tools.doctor
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
