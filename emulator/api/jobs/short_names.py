"""Names in short: which of several names a user means by a part of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from emulator.api import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flask import Blueprint

    from emulator.api.account_services import RequestAccounts

Named = TypeVar("Named")

_MOST_SHOWN = 20


def choose_named(text: str, known: Sequence[Named], read_name: Callable[[Named], str]) -> list[Named]:
    """Return the objects that ``text`` may refer to.

    These are the objects whose name is ``text``. If there are none, those whose name starts with it; if there are none
    of these, those whose name contains it. The caller must reject more than one result. An empty text matches nothing,
    because it may come from a shell variable that is not set.

    >>> choose_named("tb", ["m-outb", "tb-2026"], str)
    ['tb-2026']
    >>> choose_named("out", ["m-outb", "tb-2026"], str)
    ['m-outb']
    """
    if not text:
        return []
    called = [each for each in known if read_name(each) == text]
    begins = [each for each in known if read_name(each).startswith(text)]
    return called or begins or [each for each in known if text in read_name(each)]


def build_names_pages(accounts: RequestAccounts) -> Blueprint:
    """Build the route."""
    # A local import, because the command line chooses names without the service.
    from flask import Blueprint, jsonify, request

    pages = Blueprint("names", __name__)

    @pages.get(f"{PREFIX}job-names")
    def find_jobs_named() -> Any:
        # A job name contains no slash, so the part before a slash is a region.
        region, _, text = request.args.get("text", "").rpartition("/")
        known = accounts.find().store.list_training_job_names(text)
        known = [each for each in known if region in ("", each[0])]
        found = choose_named(text, known, lambda each: each[1])
        jobs = [{"region": region, "name": name} for region, name in found[:_MOST_SHOWN]]
        return jsonify(jobs=jobs, count=len(found))

    return pages
