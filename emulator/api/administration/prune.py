"""``/_emulator/prune``: removal of ended jobs' remains, by age and size."""

import re
from collections.abc import Callable
from typing import Any

from flask import Blueprint, jsonify, request

from emulator.api import PREFIX


def build_prune_pages(prune: Callable[[float | None, int | None, bool], list[dict[str, Any]]]) -> Blueprint:
    """Build the route.

    Args:
        prune: takes a minimum age in seconds, the number of bytes to keep, and whether this is a dry run; returns the
            items that it removed, or would remove.
    """
    pages = Blueprint("prune", __name__)

    @pages.post(f"{PREFIX}prune")
    def prune_remains() -> Any:
        given = {name: request.args[name] for name in ("olderThanSeconds", "keepBytes") if name in request.args}
        for name, text in given.items():
            if not re.fullmatch(r"[0-9]{1,15}", text):
                return jsonify(error=f"{name} is {text[:40]!r}: give a whole number."), 400
        bounds = {name: int(text) for name, text in given.items()}
        dry_run = request.args.get("dryRun", "0")
        if dry_run not in ("0", "1"):
            return jsonify(error=f"dryRun is {dry_run[:40]!r}: use 0 or 1."), 400
        return jsonify(removed=prune(bounds.get("olderThanSeconds"), bounds.get("keepBytes"), dry_run == "1"))

    return pages
