"""Tests of how jobs of pytest-xdist's workers come to who reports them."""

from types import SimpleNamespace
from typing import Any

import pytest

from sdk_compat import pytest_plugin


def test_jobs_of_all_workers_are_in_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Workers of one emulator elsewhere report the same job."""
    options = {"--sagemaker-keep": True}
    reporting = SimpleNamespace(stash=pytest.Stash(), getoption=options.get)
    same: dict[str, Any] = {"region": "us-east-1", "status": "Completed", "test": "", "rules": [], "warnings": []}
    for name in ("of-one", "of-another", "of-one"):
        worker: Any = SimpleNamespace(workeroutput={})
        pytest_plugin._keep_jobs(worker, [{**same, "name": name, "state_dir": f"/{name}"}])
        pytest_plugin.pytest_testnodedown(SimpleNamespace(config=reporting, workeroutput=worker.workeroutput), None)
    reporter = SimpleNamespace(isatty=False, section=print, write_line=print, _tw=SimpleNamespace(fullwidth=80))
    pytest_plugin.pytest_terminal_summary(reporter, reporting)  # type: ignore[arg-type]
    lines = [line.split()[0] for line in capsys.readouterr().out.splitlines() if "of-" in line]
    assert lines == ["of-one", "of-another", "Kept:", "Kept:"]
