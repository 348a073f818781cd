"""Tests of the component that opens the container back end."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.running_emulator import BACK_ENDS


@pytest.mark.parametrize("runtime", BACK_ENDS)
def test_the_thread_that_opens_the_back_end_imports_no_module_of_jobs(runtime: str, tmp_path: Path) -> None:
    # They are imported by another thread meanwhile: each could wait for the other.
    source = (
        "import sys\n"
        "from pathlib import Path\n"
        "from emulator.components.containers import choose_runtime\n"
        "from emulator.settings import Settings\n"
        f"settings = Settings(state_dir=Path({str(tmp_path)!r}), runtime={runtime!r})\n"
        "choose_runtime(settings, restored=True).runtime.close()\n"
        "print([name for name in sys.modules if name.startswith(('emulator.jobs', 'sqlalchemy'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
