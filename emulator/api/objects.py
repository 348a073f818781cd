"""``/_emulator/s3``: read access to buckets and objects, for links.

Objects are served with headers that prevent a browser from running scripts in them.
"""

import mimetypes
import tarfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from flask import Blueprint, Response, jsonify, request

from emulator.api import PREFIX
from emulator.api.account_services import RequestAccounts, read_number, read_required
from emulator.exceptions import ValidationException

_MOST_ENTRIES = 1000
_MOST_MEMBERS = 2000
_CHUNK_BYTES = 256 * 1024
# An object may be an untrusted page: it gets no scripts, forms, frames or external resources, and an opaque origin.
_INERT = {
    "Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
}
# Types that the browser displays. Other objects are shown as plain text or downloaded.
_SHOWN = ("image/", "text/html", "application/json", "application/pdf")
_TEXTS = (".log", ".txt", ".py", ".csv", ".json", ".md", ".yaml", ".yml", ".toml", ".cfg", ".sh", ".ts", ".ipynb")


def build_objects_pages(accounts: RequestAccounts) -> Blueprint:
    """Build the routes."""
    pages = Blueprint("objects", __name__)

    @pages.get(f"{PREFIX}s3")
    def list_buckets() -> Any:
        return jsonify(buckets=accounts.find().object_store_for(accounts.region).list_buckets())

    @pages.get(f"{PREFIX}s3/<bucket>")
    def list_keys(bucket: str) -> Any:
        store = accounts.find().object_store_for(accounts.region)
        prefix, after = request.args.get("prefix", ""), request.args.get("after", "")
        most = max(1, read_number("limit", 200, _MOST_ENTRIES))
        folders, objects, last = store.list_level(bucket, prefix, after, most)
        return jsonify(
            bucket=bucket,
            prefix=prefix,
            folders=folders,
            objects=[
                {"key": each.key, "size": each.size, "modifiedMs": round(each.last_modified.timestamp() * 1000)}
                for each in objects
            ],
            after=last,
        )

    @pages.get(f"{PREFIX}s3/<bucket>/object")
    def read_object(bucket: str) -> Response:
        key = read_required("key")
        file, size, given_type = accounts.find().object_store_for(accounts.region).open(bucket, key)
        most = read_number("limit", size, 1 << 60)
        name = key.rpartition("/")[2]
        headers = {**_INERT, "Content-Length": str(min(size, most)), "X-Object-Size": str(size)}
        kind = choose_type(name, given_type)
        if kind is None or "download" in request.args:
            kind = "application/octet-stream"
            quoted = "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)
            headers["Content-Disposition"] = f'attachment; filename="{quoted.encode("ascii", "replace").decode()}"'
        return Response(_read(file, min(size, most)), headers=headers, content_type=kind)

    @pages.get(f"{PREFIX}s3/<bucket>/archive")
    def list_archive(bucket: str) -> Any:
        key = read_required("key")
        file, _, _ = accounts.find().object_store_for(accounts.region).open(bucket, key)
        with file:
            return jsonify(_list_members(file, key))

    return pages


def choose_type(name: str, given: str) -> str | None:
    """Choose the content type with which an object is displayed; None if it can only be downloaded.

    >>> choose_type("plot.svg", "binary/octet-stream"), choose_type("train.py", ""), choose_type("model.pt", "")
    ('image/svg+xml', 'text/plain; charset=utf-8', None)
    """
    guessed = mimetypes.guess_type(name)[0] or given
    if name.endswith(_TEXTS) and not name.endswith(".json"):
        return "text/plain; charset=utf-8"
    if guessed.startswith(_SHOWN):
        return guessed if guessed.startswith(("image/", "application/pdf")) else f"{guessed}; charset=utf-8"
    return "text/plain; charset=utf-8" if guessed.startswith("text/") else None


def _read(file: IO[bytes], size: int) -> Iterator[bytes]:
    with file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            yield chunk


def _list_members(file: IO[bytes], key: str) -> dict[str, Any]:
    """List the members of a tar archive without unpacking it.

    Raises:
        ValidationException: the file is not a complete tar archive.
    """
    members: list[dict[str, Any]] = []
    try:
        # The archive is read as a stream, so a decompression bomb is read only up to the last listed member.
        with tarfile.open(fileobj=file, mode="r|*") as archive:
            for member in archive:
                if len(members) == _MOST_MEMBERS:
                    return {"members": members, "complete": False}
                members.append({"name": member.name, "size": member.size, "isFile": member.isfile()})
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ValidationException(f"{key} is not a complete tar archive: {error}.") from None
    return {"members": members, "complete": True}
