"""Tests of the how-to pages: what a snippet imports, the page says how to install."""

import ast
import re
import sys
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[2] / "docs" / "how_to").glob("*.md"))
# What the emulator itself brings.
BROUGHT = {
    "boto3",
    "botocore",
    "emulator",
    "numpy",
    "sdk_compat",
    "smdebug",
    "smdebug_emulator",
    *sys.stdlib_module_names,
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_snippet_imports_is_named_as_to_be_installed(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r'^```python(?: title="([^"]*)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    own = {Path(file).stem for file, _ in blocks if file}
    imported = set()
    # A file that runs in an image finds there what it imports.
    for file, source in blocks:
        for node in ast.walk(ast.parse(source)) if "in the image" not in file else ():
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                imported.add(node.module.partition(".")[0])
    named = " ".join(re.findall(r"pip install ([^`\n]*)", text))
    assert {name for name in imported - BROUGHT - own if not re.search(rf"\b{name}\b", named)} == set()
