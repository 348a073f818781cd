"""The public names of upstream's wheel 1.0.34, and the docs table made from them."""

import json
from pathlib import Path

DATA = Path(__file__).with_suffix(".json")
# Why names of a package are absent; the longest prefix counts.
REASONS = {
    "smdebug.core": "internals of upstream's files, configuration and storage",
    "smdebug.mxnet": "internals of upstream's hook",
    "smdebug.profiler": "internals of upstream's own profiler, which runs inside the training",
    "smdebug.pytorch": "internals of upstream's hook",
    "smdebug.rules": "internals of upstream's actions",
    "smdebug.tensorflow": "internals of upstream's hook",
    "smdebug.xgboost": "internals of upstream's hook, and loaders of data that it does not use itself",
}

Names = dict[str, dict[str, list[str]]]


def read_names() -> Names:
    """By module: the names that are there, those whose use is refused, and those that are absent."""
    names: Names = json.loads(DATA.read_text())
    return names


def render_table(names: Names) -> str:
    """Return a row for each module of which not all names are there, and the number of the others."""
    rows = ["| module | there | importable, refused when used | absent |", "|---|---|---|---|"]
    for module, found in sorted(names.items()):
        if found.keys() - {"there"}:
            cells = [", ".join(f"`{name}`" for name in found.get(key, [])) for key in ("there", "refused", "absent")]
            if found.get("absent"):
                cells[2] += f": {find_reason(module)}"
            rows.append(f"| `{module}` | {' | '.join(cells)} |")
    whole = sorted(module for module, found in names.items() if not found.keys() - {"there"})
    listed = ", ".join(f"`{module}`" for module in whole)
    return "\n".join([*rows, "", f"All public names are there in {len(whole)} further modules: {listed}."])


def find_reason(module: str) -> str:
    return next(REASONS[prefix] for prefix in sorted(REASONS, reverse=True) if module.startswith(prefix))
