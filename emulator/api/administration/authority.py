"""``/_emulator/authority``: the certificates that clients have to trust."""

from pathlib import Path

from flask import Blueprint, Response

from emulator.api import AUTHORITY_PATH
from emulator.exceptions import ResourceNotFound


def build_authority_pages(bundle: Path | None) -> Blueprint:
    """Build the route, which asks for no token: a client compares the answer with the hash that it was given.

    Args:
        bundle: the CA file for clients; None without TLS.
    """
    pages = Blueprint("authority", __name__)

    @pages.get(AUTHORITY_PATH)
    def read_authority() -> Response:
        if bundle is None:
            raise ResourceNotFound("This emulator is served without TLS, so it has no certificates.", status=404)
        return Response(bundle.read_bytes(), mimetype="application/x-pem-file")

    return pages
