"""Examples page, generated from the folders' READMEs and the notebooks."""

import json
import re
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def build_examples_page() -> str:
    """Return the page."""
    lines = ["# Examples", "", "All of them are in `examples/` of the checkout, and each is run by a test.", ""]
    lines += ["## Notebooks", "", "In `examples/notebooks/`: `smdebug-emulator run -- jupyter lab`.", ""]
    lines += ["| notebook | shows |", "|---|---|"]
    lines += [_describe_notebook(path) for path in sorted((EXAMPLES / "notebooks").glob("*.ipynb"))]
    for readme in sorted(EXAMPLES.glob("*/README.md")):
        text = re.sub(r"^#", "##", readme.read_text(encoding="utf-8"), flags=re.MULTILINE)
        text = re.sub(r"\]\([^)#]*/README\.md\)", "]", text).replace("[`../", "`").replace("/`]", "/`")
        if readme.parent.name != "notebooks":
            lines += ["", text.strip(), "", f"In `examples/{readme.parent.name}/`."]
    return "\n".join(lines) + "\n"


def _describe_notebook(path: Path) -> str:
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    title, paragraph, *_ = first.removeprefix("# ").split("\n\n")
    return f"| `{path.name}`<br>{title} | {' '.join(paragraph.split())} |"
