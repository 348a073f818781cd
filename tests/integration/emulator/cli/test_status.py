"""``status`` of an emulator whose state has a copy in another S3."""

from pathlib import Path

import pytest

from tests.commands import run_command
from tests.forked_emulator import ForkedEmulator
from tests.other_s3 import BUCKET, VARIABLES, run_other_s3

pytestmark = pytest.mark.slow


def test_status_says_where_the_copy_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with run_other_s3() as other:
        monkeypatch.setenv("SMDEBUG_EMULATOR_S3_ENDPOINT", other.endpoint_url)
        with ForkedEmulator(tmp_path / "state", runtime="process") as emulator:
            said = run_command("status", "--state-dir", str(emulator.state_dir)).stdout
    assert f"\nCopy      s3://{BUCKET} at {other.endpoint_url}, entry " in said
