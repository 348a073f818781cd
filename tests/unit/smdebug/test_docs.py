"""Tests of docs/smdebug.md: its examples run, and its tables are complete.

The examples run in their order and in one namespace.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from smdebug.capture.singleton import del_hook
from smdebug.config.json_config import COLLECTION_PARAMETERS, HOOK_PARAMETERS

PAGE = (Path(__file__).parents[3] / "docs" / "smdebug.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.slow
def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAINING_JOB_NAME", "SAGEMAKER_METRICS_DIRECTORY", "CHECKPOINT_CONFIG_FILE_PATH", "USE_SMDEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "docs_smdebug"}
    assert len(EXAMPLES) == 4
    for number, example in enumerate(EXAMPLES):
        exec(compile(example, f"docs/smdebug.md, example {number + 1}", "exec"), namespace)
    del_hook()


@pytest.mark.parametrize("key", sorted({key.rpartition(".")[2] for key in HOOK_PARAMETERS | COLLECTION_PARAMETERS}))
def test_every_key_is_in_the_table(key: str) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert any(f"`{key}`" in row for row in rows)
