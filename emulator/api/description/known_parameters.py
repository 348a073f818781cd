"""Refusal of query parameters that the API's description does not have."""

from flask import Blueprint, request

from emulator.api.description.routes import PAGES
from emulator.exceptions import ValidationException

_PARAMETERS = {(page.method, page.path): page.query for page in PAGES}


def build_parameter_check() -> Blueprint:
    """Build a blueprint without routes, which checks the requests to those of all others."""
    check = Blueprint("known_parameters", __name__)
    check.before_app_request(refuse_unknown_parameters)
    return check


def refuse_unknown_parameters() -> None:
    """Check the query of the request.

    Raises:
        ValidationException: it has a parameter that the description of the route does not have.
    """
    if request.url_rule is None:
        return
    # The questions of one address are described each.
    path = request.url_rule.rule.replace("<question>", (request.view_args or {}).get("question", ""))
    known = _PARAMETERS.get(("GET" if request.method == "HEAD" else request.method, path))
    # The token is the gateway's: a link may have it, though the browser has its cookie.
    unknown = [name for name in request.args if known is not None and name not in (*known, "token")]
    if unknown:
        choices = f"use {', '.join(known)}" if known else "it has none"
        raise ValidationException(f"{request.path[:200]} has no query parameter {unknown[0][:40]}: {choices}.")
