"""Condition keys of S3 requests: what bucket policies can ask of one."""

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import parse_qs
from wsgiref.types import WSGIEnvironment

from emulator.moto_services.iam.conditions import UnknowableKeyError
from emulator.moto_services.iam.principals import find_principal

_CREDENTIAL = re.compile(r"(?:.*Credential=)?(?P<key>[^,/\s]+)/[^,/\s]+/(?P<region>[^,/\s]+)/")
_ACCOUNT_HEADER = "HTTP_X_MOTO_ACCOUNT_ID"
# A request has none of these: nobody signs by a second factor, and no service of AWS asks for somebody else.
_ABSENT = frozenset(
    {
        "aws:multifactorauthage",
        "aws:multifactorauthpresent",
        "aws:sourceaccount",
        "aws:sourcearn",
        "aws:federatedprovider",
    }
)
_QUERY = {"s3:prefix": "prefix", "s3:delimiter": "delimiter", "s3:max-keys": "max-keys", "s3:versionid": "versionId"}


class _Signer(NamedTuple):
    """How a request is signed; without a region by version 2 of the signatures."""

    access_key: str
    region: str | None
    authentication: str


class RequestKeys:
    """The condition keys of one request for a bucket."""

    def __init__(self, environ: WSGIEnvironment, bucket_account: str) -> None:
        self._environ = environ
        self._bucket_account = bucket_account
        self._query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)

    def find(self, key: str) -> Sequence[str] | None:
        """Return the values of a key in small letters; None where the request has no such key.

        Raises:
            UnknowableKeyError: the emulator does not know, such as the VPC that a request comes from.
        """
        if key in _ABSENT:
            return None
        if key in _QUERY:
            return self._query.get(_QUERY[key])
        if key.startswith("s3:x-amz-"):
            return self._find_header(key.removeprefix("s3:"))
        if key.startswith("s3:requestobjecttag"):
            return self._find_tags(key)
        known = self._build_known()
        if key not in known:
            raise UnknowableKeyError(key)
        value = known[key]
        return None if value is None else [value]

    def _find_header(self, name: str) -> Sequence[str] | None:
        value = self._environ.get(f"HTTP_{name.upper().replace('-', '_')}")
        return [str(value)] if value is not None else self._query.get("-".join(map(str.title, name.split("-"))))

    def _find_tags(self, key: str) -> Sequence[str] | None:
        tags = parse_qs((self._find_header("x-amz-tagging") or [""])[0], keep_blank_values=True)
        if key == "s3:requestobjecttagkeys":
            return list(tags) or None
        return {name.lower(): values for name, values in tags.items()}.get(key.partition("/")[2])

    def _build_known(self) -> Mapping[str, str | None]:
        environ = self._environ
        signer = _find_signer(environ, self._query)
        now = datetime.now(UTC)
        return {
            # Requests do not leave this machine: policies that require TLS have to work here, too.
            "aws:securetransport": "true",
            "s3:tlsversion": "1.3",
            "aws:currenttime": now.isoformat(),
            "aws:epochtime": str(int(time.time())),
            "aws:sourceip": environ.get("REMOTE_ADDR"),
            "aws:useragent": environ.get("HTTP_USER_AGENT"),
            "aws:referer": environ.get("HTTP_REFERER"),
            "aws:requestedregion": signer and signer.region,
            "aws:principalisawsservice": "false",
            "aws:viaawsservice": "false",
            "aws:resourceaccount": self._bucket_account,
            "s3:resourceaccount": self._bucket_account,
            "s3:signatureversion": signer and ("AWS4-HMAC-SHA256" if signer.region else "AWS"),
            "s3:authtype": signer and signer.authentication,
            **self._describe_principal(signer),
        }

    def _describe_principal(self, signer: _Signer | None) -> dict[str, str | None]:
        if signer is None:
            return {"aws:principaltype": "Anonymous", **dict.fromkeys(_OF_PRINCIPALS)}
        account = str(self._environ.get(_ACCOUNT_HEADER) or self._bucket_account)
        principal = find_principal(signer.access_key)
        arn = f"arn:aws:iam::{account}:root" if principal is None else principal.arn
        kind, _, name = arn.rpartition(":")[2].partition("/")
        types = {"root": "Account", "user": "User", "assumed-role": "AssumedRole"}
        return {
            "aws:principaltype": types.get(kind, "User"),
            "aws:principalarn": arn,
            "aws:principalaccount": account if principal is None else principal.account,
            "aws:username": name.rpartition("/")[2] if kind == "user" else None,
        }


_OF_PRINCIPALS = ("aws:principalarn", "aws:principalaccount", "aws:username")


def _find_signer(environ: WSGIEnvironment, query: Mapping[str, Sequence[str]]) -> _Signer | None:
    credential, authentication = environ.get("HTTP_AUTHORIZATION", ""), "REST-HEADER"
    if not credential:
        authentication = "REST-QUERY-STRING"
        credential = query.get("X-Amz-Credential", [""])[0]
    if found := _CREDENTIAL.match(credential):
        return _Signer(found["key"], found["region"], authentication)
    if credential.startswith("AWS "):
        return _Signer(credential[4:].partition(":")[0], None, authentication)
    return _Signer(query["AWSAccessKeyId"][0], None, authentication) if "AWSAccessKeyId" in query else None
