"""Table of the environments of older framework versions in docs/frameworks.md.

``python -m docs_site.framework_versions`` renews it; a test compares.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from container_runtime.images.catalogue import ImageCatalogue, ImageDefinition
from container_runtime.images.lock_files import read_size

PAGE = Path(__file__).parents[1] / "docs" / "frameworks.md"
# The table is between these lines of the page.
_BLOCK = re.compile(r"(?<=<!-- environments: `make pages` -->\n\n).*?(?=\n\n<!-- end of environments -->)", re.DOTALL)
# What users call each image, and the packages whose versions count, with what is said before each version.
FRAMEWORKS: dict[str, tuple[str, dict[str, str]]] = {
    "pytorch-training": ("PyTorch", {"torch": ""}),
    "huggingface-pytorch-training": ("Hugging Face with PyTorch", {"torch": "", "transformers": "transformers "}),
    "tensorflow-training": ("TensorFlow", {"tensorflow-cpu": ""}),
    "sagemaker-xgboost": ("XGBoost", {"xgboost": "", "xgboost-cpu": ""}),
    "sagemaker-scikit-learn": ("scikit-learn", {"scikit-learn": ""}),
    "mxnet-training": ("MXNet", {"mxnet": ""}),
}
# The sizes of x86-64: pages do not depend on the machine that writes them.
_ARCHITECTURE = "x86_64"


def build_table(catalogue: ImageCatalogue) -> str:
    """Build the table: for each framework its environments, the oldest first."""
    lines = ["| asked | runs | environment | to fetch |", "|---|---|---|---|"]
    for name, (framework, packages) in FRAMEWORKS.items():
        first = ""
        for definition in catalogue.list_environments(name):
            asked = f"{framework} {_describe_range(first, definition.below)}"
            runs = " with ".join(_list_versions(definition, packages))
            lines.append(f"| {asked} | {runs} | `{definition.name}` | {_describe_size(definition)} |")
            first = definition.below or ""
    return "\n".join(lines)


def _describe_range(first: str, below: str | None) -> str:
    """Describe the versions from ``first`` on that are older than ``below``; both may be missing."""
    if below is None:
        return f"from {first} on" if first else "of any version"
    return f"from {first}, before {below}" if first else f"before {below}"


def _list_versions(definition: ImageDefinition, packages: Mapping[str, str]) -> Iterator[str]:
    for requirement in definition.requirements:
        name, _, pinned = requirement.partition("==")
        if name in packages:
            yield packages[name] + pinned
        elif re.split(r"[<>]", name)[0] in packages:  # not pinned: the lock file's, which the image's version says
            yield str(definition.version).partition("-")[0]


def _describe_size(definition: ImageDefinition) -> str:
    size = read_size(definition, definition.python or "3.11", _ARCHITECTURE) or definition.fetched_mb * 10**6
    return f"{size / 1e9:.1f} GB" if size else ""


def replace_table(page: str, table: str) -> str:
    """Return the page with this table in place of the one that it has.

    Raises:
        ValueError: the page has no such table.
    """
    if not _BLOCK.search(page):
        raise ValueError("The page has no table of environments.")
    return _BLOCK.sub(lambda _: table, page)


def main() -> None:
    """Renew the table in the page."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replace_table(page, build_table(ImageCatalogue())), encoding="utf-8")


if __name__ == "__main__":
    main()
