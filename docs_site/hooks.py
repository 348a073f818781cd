"""MkDocs hooks: generated pages, page order, and files outside of `docs/`."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

from docs_site.commands import build_commands_page
from docs_site.environment import build_environment_page
from docs_site.examples import build_examples_page
from docs_site.messages import build_messages_page
from docs_site.warnings import build_warnings_page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

CHECKOUT = Path(__file__).parents[1]
GENERATED = {
    "reference/commands.md": build_commands_page,
    "reference/environment.md": build_environment_page,
    "reference/warnings.md": build_warnings_page,
    "examples.md": build_examples_page,
    "troubleshooting.md": build_messages_page,
}
GROUPS = {
    "Get started": ("install.md", "how_to/demo_offline.md", "commands.md", "comparison.md", "what_runs.md"),
    "Use it with": (
        "how_to/use_the_sdk_v3.md",
        "how_to/use_the_sdk.md",
        "how_to/use_it_from_python.md",
        "how_to/bring_a_container.md",
        "how_to/run_in_a_container.md",
        "how_to/reach_it_from_elsewhere.md",
        "swarm.md",
        "examples.md",
        "clients.md",
        "frameworks.md",
    ),
    "Look at results": ("console.md", "trials.md", "profiler.md", "smdebug.md"),
    "Rules": ("rules.md", "how_to/write_a_rule.md", "rules-study.md"),
    "CI": ("how_to/test_in_ci.md", "how_to/inject_faults.md", "troubleshooting.md"),
    "Reference": ("reference/", "coverage.md", "upstream_names.md", "guarantees.md", "scale.md", "changelog.md"),
    "Internals": ("architecture.md", "glossary.md", "back_ends.md", "decisions/"),
}
_REST = "More"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages, and set the order of all pages."""
    for uri, build in GENERATED.items():
        files.append(File.generated(config, uri, content=build()))
    files.append(
        File.generated(config, "changelog.md", content=(CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8"))
    )
    shim = (Path(__file__).with_name("iframe_worker.js")).read_text(encoding="utf-8")
    files.append(File.generated(config, "javascripts/iframe-worker.js", content=shim))
    config.nav = sort_pages([file.src_uri for file in files.documentation_pages()])
    number = version("smdebug-emulator")
    config.copyright = f"Documentation of version {number}; other versions are in their releases."
    # A release puts it into a folder of that name, beside those of other versions: the header lists them.
    if Path(config.site_dir).name == number:
        config.extra["version"] = {"provider": "mike"}
    return files


def sort_pages(uris: list[str]) -> list[Any]:
    """Return the navigation of all pages: those of each group in the group's order, and all others at the end."""
    left = sorted(set(uris) - {"index.md"})
    groups: list[Any] = [{"Home": "index.md"}]
    for title, members in GROUPS.items():
        chosen = [
            uri for member in members for uri in left if uri == member or (member[-1] == "/" and uri.startswith(member))
        ]
        left = [uri for uri in left if uri not in chosen]
        groups += [{title: chosen}] if chosen else []
    return groups + ([{_REST: left}] if left else [])


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Replace links to files outside `docs/` with the file names: the files are in the checkout, not on the site."""
    folder = (CHECKOUT / "docs" / page.file.src_uri).parent

    def keep(link: re.Match[str]) -> str:
        text, target = link["text"], link["target"]
        path = (folder / target.partition("#")[0]).resolve()
        outside = path.exists() and not path.is_relative_to(CHECKOUT / "docs")
        return f"{text} (`{path.relative_to(CHECKOUT)}`)" if outside else link[0]

    return re.sub(r"(?<!!)\[(?P<text>[^\]\n]+)\]\((?P<target>(?![a-z]+:|#)[^)\s]+)\)", keep, markdown)
