"""Access key and region of a request; Host and Origin checks.

Signatures are parsed here but not checked: any key and secret work unless ``guard`` checks them. Otherwise, access is
limited by the addresses that the emulator listens on, and by the Host and Origin checks, which keep a web page from
reaching it through the user's browser.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import parse_qs, urlsplit
from wsgiref.types import WSGIEnvironment

from emulator.exceptions import AccessDeniedException, AwsError, MissingAuthenticationToken

LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "::1"})
# By this name other containers reach ports that the machine has published.
HOST_OF_CONTAINERS = "host.docker.internal"
# The header from which moto reads the account of a request.
ACCOUNT_HEADER = "HTTP_X_MOTO_ACCOUNT_ID"
# Values of Sec-Fetch-Site for requests that no other web page caused; clients other than browsers do not send it.
_OWN_SITES = frozenset({"same-origin", "none"})
ACCOUNT = re.compile(r"[0-9]{12}")
_SCOPE = re.compile(r"Credential=[^/,\s]+/\d{8}/([a-z0-9-]+)/[a-z0-9.-]+/aws4_request")

_ACCESS_KEY = re.compile(r"(?:Credential=|^AWS )([^/:,\s]+)")


def read_region(environ: WSGIEnvironment, default: str = "") -> str:
    """Read the region from the Authorization header or a presigned query; return ``default`` if unsigned."""
    found = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    if found is None and "X-Amz-Credential" in environ.get("QUERY_STRING", ""):
        query = parse_qs(environ["QUERY_STRING"])
        found = _SCOPE.search(f"Credential={query.get('X-Amz-Credential', [''])[0]}")
    return default if found is None else found[1]


def read_access_key(environ: WSGIEnvironment) -> str:
    """Read the access key that signed a request or its URL; return an empty string if unsigned."""
    query = parse_qs(environ.get("QUERY_STRING", ""))
    signed = query.get("X-Amz-Credential", query.get("AWSAccessKeyId", [""]))[0]
    found = _ACCESS_KEY.search(environ.get("HTTP_AUTHORIZATION", ""))
    return found[1] if found is not None else signed.partition("/")[0]


def authenticate(environ: WSGIEnvironment, regions: Collection[str]) -> str:
    """Return the region of a request that has to be signed.

    Args:
        environ: the request.
        regions: the regions that AWS has.

    Raises:
        MissingAuthenticationToken: the request is not signed.
        AwsError: ``InvalidSignatureException``, the request is signed for a region that does not exist.
    """
    region = read_region(environ)
    if not region:
        raise MissingAuthenticationToken(
            "Missing Authentication Token: sign the request with any key, as AWS's clients do after "
            'eval "$(smdebug-emulator env)".',
            code="MissingAuthenticationTokenException",
        )
    if region not in regions:
        text = (
            f"Credential should be scoped to a valid region, not {region!r}: set AWS_DEFAULT_REGION, or the client's "
            "region, to one of AWS's, such as us-east-1."
        )
        raise AwsError(text, code="InvalidSignatureException")
    return region


@lru_cache(maxsize=1)
def load_regions() -> frozenset[str]:
    """Load the names of AWS's regions, as botocore lists them."""
    from botocore.loaders import Loader

    endpoints = Loader().load_data("endpoints")
    return frozenset(region for partition in endpoints["partitions"] for region in partition["regions"])


def check_source(environ: WSGIEnvironment, own_hosts: Collection[str]) -> None:
    """Accept only requests that are addressed to this machine by one of its own names.

    A web page can point its own host name to 127.0.0.1 (DNS rebinding), but the browser then sends that name as Host. A
    page that requests localhost directly is recognized by its Origin, or, if the browser sends no Origin, as for an
    image, by Sec-Fetch-Site. Only pages of the same origin are accepted: other servers on this machine are not trusted
    either.

    Args:
        environ: the request.
        own_hosts: host names and addresses without ports; subdomains of ``localhost`` are always accepted.

    Raises:
        AccessDeniedException: the Host, Origin or site is not the emulator's.
    """
    host = environ.get("HTTP_HOST", "")
    if host and not _is_own(_read_host(f"//{host}"), own_hosts):
        raise AccessDeniedException(
            f"The request's Host is {host!r}; this emulator answers only to {', '.join(sorted(own_hosts))} and names "
            "under .localhost. Use one of them as the endpoint."
        )
    own_origin = f"{environ.get('wsgi.url_scheme', 'http')}://{host}"
    origin = environ.get("HTTP_ORIGIN")
    if origin is not None and origin.lower() != own_origin.lower():
        raise AccessDeniedException(
            f"The request comes from a web page of {origin!r}; at this address the emulator answers only its own "
            f"pages, those of {own_origin}. Ask it from a program instead of a page."
        )
    site = environ.get("HTTP_SEC_FETCH_SITE")
    if site is not None and site not in _OWN_SITES:
        raise AccessDeniedException(
            f"A web page of another site caused this request (Sec-Fetch-Site is {site!r}); the emulator answers only "
            "its own pages, programs, and addresses that are typed into the browser."
        )


def _read_host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_own(host: str, own_hosts: Collection[str]) -> bool:
    return host in own_hosts or host.endswith(".localhost")
