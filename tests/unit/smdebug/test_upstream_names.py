"""Public names of upstream's wheel: there, refused or absent as the docs say."""

import importlib
from pathlib import Path

import pytest

from smdebug.exceptions import SMDebugNotImplementedError
from smdebug.profiler.utils import (
    convert_utc_timestamp_to_nanoseconds,
    get_node_id_from_system_profiler_filename,
    str2bool,
)
from tests.unit.smdebug.test_public_names import OF_TENSORFLOW
from tests.unit.smdebug.upstream_names import read_names, render_table

NAMES = read_names()
PAGE = Path(__file__).parents[3] / "docs" / "upstream_names.md"


def check_listed(module: str) -> None:
    if module.startswith("smdebug.mxnet"):
        pytest.importorskip("mxnet", reason="MXNet lives in an environment of its own", exc_type=ImportError)
    found = NAMES[module]
    for name in found.get("there", []):
        exec(f"from {module} import {name}", {})
    for name in found.get("refused", []):
        refused = getattr(importlib.import_module(module), name)
        with pytest.raises(SMDebugNotImplementedError) as caught:
            refused("an argument")
        assert str(caught.value).count(".") >= 1
    for name in found.get("absent", []):
        with pytest.raises(ImportError, match=r"No module named|cannot import name"):
            exec(f"from {module} import {name}", {})


@pytest.mark.slow
@pytest.mark.parametrize("module", [module for module in sorted(NAMES) if not module.startswith(OF_TENSORFLOW)])
def test_names_are_there_refused_or_absent_as_listed(module: str) -> None:
    check_listed(module)


def test_the_docs_table_is_made_from_the_list() -> None:
    assert render_table(NAMES) in PAGE.read_text()


def test_small_functions_that_scripts_import_from_the_profiler() -> None:
    assert [str2bool(text) for text in (True, "true", "no", "1", "0")] == [True, True, False, True, False]
    with pytest.raises(ValueError, match="neither on nor off"):
        str2bool("perhaps")
    assert get_node_id_from_system_profiler_filename("a/system/incremental/1591160700.algo-2.json") == "algo-2"
    assert get_node_id_from_system_profiler_filename("system/other.json") is None
    assert convert_utc_timestamp_to_nanoseconds(2) == 2000
