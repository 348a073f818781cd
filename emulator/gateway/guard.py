"""Signature and permission checks of ``start --require-signature``."""

import hmac
import json
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit
from wsgiref.types import WSGIApplication, WSGIEnvironment

from emulator.exceptions import AwsError, SignatureError
from emulator.gateway.authentication import ACCOUNT, ACCOUNT_HEADER
from emulator.lambda_functions.invoke_api import INVOKE_PATH
from emulator.moto_services.iam.actions import Asked, find_asked, find_s3_path
from emulator.moto_services.iam.policy_simulation import judge
from emulator.moto_services.iam.principals import Principal, find_principal, list_role_documents
from emulator.moto_services.service_requests import encode_error, find_model, find_protocol
from emulator.security.keys import Keys
from emulator.security.signatures import (
    ALGORITHM,
    Signature,
    check_old_address,
    check_signature,
    read_old_address,
    read_signature,
)
from emulator.security.signed_forms import SignedForm, check_form_policy, check_form_signature, read_signed_form

OWN_KEY = "smdebug-emulator"
"""Access key of the emulator's own commands. An account's number is an access key too, and signs as that account."""
_DEFAULT_REGION = "us-east-1"  # for version 2 signatures, which have no region
_ALWAYS_ALLOWED = frozenset({"sts:GetCallerIdentity"})
_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key "
    "and signing method. Consult the service documentation for details."
)
_UNKNOWN = "The security token included in the request is invalid."
# Error codes of S3, the query protocol, EC2 and the JSON protocols, each with its status; then the message.
_WORDS: Mapping[str, tuple[tuple[str, int], tuple[str, int], tuple[str, int], tuple[str, int], str]] = {
    "missing": (
        ("AccessDenied", 403), ("MissingAuthenticationToken", 403), ("AuthFailure", 401),
        ("MissingAuthenticationTokenException", 400), "Request is missing Authentication Token",
    ),
    "incomplete": (
        ("AuthorizationHeaderMalformed", 400), ("IncompleteSignature", 400), ("AuthFailure", 401),
        ("IncompleteSignatureException", 400), "The request's signature is incomplete.",
    ),
    "unknown_key": (
        ("InvalidAccessKeyId", 403), ("InvalidClientTokenId", 403), ("AuthFailure", 401),
        ("UnrecognizedClientException", 400), _UNKNOWN,
    ),
    "bad_token": (
        ("InvalidToken", 400), ("InvalidClientTokenId", 403), ("AuthFailure", 401),
        ("UnrecognizedClientException", 400), _UNKNOWN,
    ),
    "expired_token": (
        ("ExpiredToken", 400), ("ExpiredToken", 403), ("RequestExpired", 400), ("ExpiredTokenException", 400),
        "The security token included in the request is expired",
    ),
    "mismatch": (
        ("SignatureDoesNotMatch", 403), ("SignatureDoesNotMatch", 403), ("AuthFailure", 401),
        ("InvalidSignatureException", 400), _MISMATCH,
    ),
    "skewed": (
        ("RequestTimeTooSkewed", 403), ("SignatureDoesNotMatch", 403), ("RequestExpired", 400),
        ("InvalidSignatureException", 400),
        "The difference between the request time and the current time is too large.",
    ),
    "expired": (
        ("AccessDenied", 403), ("SignatureDoesNotMatch", 403), ("RequestExpired", 400),
        ("InvalidSignatureException", 400), "Request has expired",
    ),
    "denied": (
        ("AccessDenied", 403), ("AccessDenied", 403), ("UnauthorizedOperation", 403), ("AccessDeniedException", 400),
        "Access Denied",
    ),
}  # fmt: skip


class Guard:
    """Checks the signatures and permissions of requests to AWS services. Thread safe.

    Args:
        keys: the emulator's own keys.
        account: the default account, to which the emulator's own key and the configured keys belong.
        configured: secret keys by access key id; each signs as the account's root.
    """

    def __init__(self, keys: Keys, account: str, configured: Mapping[str, str]) -> None:
        self._keys = keys
        self._account = account
        self._configured = dict(configured)

    def refuse(self, environ: WSGIEnvironment) -> WSGIApplication | None:
        """Return the error answer to an unauthorized request, in the format of its service; None if it may pass."""
        signature: Signature | None = None
        try:
            signature = read_signature(environ) or read_old_address(environ)
            if signature is None and (form := read_signed_form(environ, find_s3_path(environ))) is not None:
                signature = form.signature
                self._check_form(environ, form)
                return None
            if signature is None:
                raise SignatureError("missing")  # noqa: TRY301 - one place for all refusals
            principal = self._identify(signature)
            check = check_signature if signature.day else check_old_address
            check(environ, signature, principal.secret)
            _check_service(environ, signature)
            _authorize(environ, signature, principal)
            # What comes next reads the account and the service here: the request may say something else elsewhere.
            environ[ACCOUNT_HEADER] = principal.account
            _name_service(environ, signature)
        except SignatureError as error:
            return refuse(environ, guess_service(environ) if signature is None else signature.service, error)
        except AwsError as error:  # S3's error for a form
            return encode_error("s3", environ, error.code, error.message, error.status)
        return None

    def _check_form(self, environ: WSGIEnvironment, form: SignedForm) -> None:
        """Accept a form if its signer's policies and its own policy allow it; record the account in the environment."""
        signature, principal = form.signature, self._identify(form.signature)
        check_form_signature(form, principal.secret)
        check_form_policy(form, datetime.now(UTC))
        _authorize(environ, signature, principal, [Asked("s3:PutObject", [form.resource])])
        environ[ACCOUNT_HEADER] = principal.account
        _name_service(environ, signature)

    def _identify(self, signature: Signature) -> Principal:
        key, token = signature.access_key, signature.token
        if token is not None and (session := self._keys.read_session(token)) is not None:
            if session.access_key != key:
                raise SignatureError("bad_token")
            if session.expires < time.time():
                raise SignatureError("expired_token")
            documents = list_role_documents(session.account, session.role_arn)
            return Principal(
                session.arn, session.account, self._keys.find_secret(token), token, session.expires, documents
            )
        own = self._keys.secret if key == OWN_KEY or ACCOUNT.fullmatch(key) else None
        secret = own or self._configured.get(key)
        account = key if ACCOUNT.fullmatch(key) else self._account
        found = find_principal(key) if secret is None else Principal(f"arn:aws:iam::{account}:root", account, secret)
        if found is None:
            raise SignatureError("unknown_key")
        if (token or "").encode() != (found.token or "").encode():
            raise SignatureError("bad_token")
        if found.expires is not None and found.expires < time.time():
            raise SignatureError("expired_token")
        return found


def _check_service(environ: WSGIEnvironment, signature: Signature) -> None:
    """Refuse a request whose target or path is of another service than its signature, by which it is judged.

    Raises:
        SignatureError: ``mismatch``.
    """
    services = []
    if environ.get("HTTP_X_AMZ_TARGET", "").startswith("SageMaker."):
        services.append("sagemaker")
    if INVOKE_PATH.fullmatch(environ.get("PATH_INFO", "")) and environ["REQUEST_METHOD"] == "POST":
        services.append("lambda")
    for service in services:
        if service != signature.service:
            raise SignatureError("mismatch", f"Credential should be scoped to correct service: '{service}'.")


def _authorize(
    environ: WSGIEnvironment, signature: Signature, principal: Principal, asked: list[Asked] | None = None
) -> None:
    """Check a request against the signer's policies.

    Args:
        environ: the request.
        signature: the request's signature.
        principal: who signed it; a root user may do everything.
        asked: the requested actions; None to derive them from the request.

    Raises:
        SignatureError: ``denied``.
    """
    if principal.documents is None:
        return
    if asked is None:
        try:
            asked = find_asked(environ, signature.service, signature.region, principal.account)
        except ValueError as error:
            raise SignatureError("denied", str(error)) from None
    if asked[0].action in _ALWAYS_ALLOWED:
        return
    documents = principal.documents()
    context = _build_context(environ, signature, principal)
    wanted = [(each.action, resource) for each in asked for resource in each.resources]
    for action, resource in wanted:
        decision = judge(documents, action, resource, context)
        if decision != "allowed":
            why = (
                "with an explicit deny in an identity-based policy"
                if decision == "explicitDeny"
                else f"because no identity-based policy allows the {action} action"
            )
            text = f"User: {principal.arn} is not authorized to perform: {action} on resource: {resource} {why}"
            raise SignatureError("denied", text)


def _build_context(environ: WSGIEnvironment, signature: Signature, principal: Principal) -> dict[str, str]:
    query = parse_qs(environ.get("QUERY_STRING", ""))
    given = {f"s3:{name}": query[name][0] for name in ("prefix", "delimiter", "max-keys") if name in query}
    return given | {
        "aws:principalarn": principal.arn,
        "aws:principalaccount": principal.account,
        "aws:requestedregion": signature.region,
        "aws:sourceip": str(environ.get("REMOTE_ADDR", "")),
        # Requests do not leave this machine: policies that require TLS have to work here, too.
        "aws:securetransport": "true",
    }


def refuse(environ: WSGIEnvironment, service: str, error: SignatureError) -> WSGIApplication:
    """Build the answer to a refused request, in the format of its service."""
    protocol = find_protocol(find_model(service), environ)
    column = 0 if service == "s3" else {"query": 1, "ec2": 2}.get(protocol, 3)
    *codes, message = _WORDS[error.kind]
    code, status = codes[column]
    if column == 3 and protocol.startswith("rest"):  # REST protocols use meaningful HTTP statuses
        status = 403
    text = message if error.message == error.kind else error.message
    return encode_error(service, environ, code, text, status)


def guess_service(environ: WSGIEnvironment) -> str:
    """Guess the service of an unsigned request."""
    if target := environ.get("HTTP_X_AMZ_TARGET"):
        prefix = str(target).partition(".")[0].lower()
        return {"sagemaker": "sagemaker", "awsevents": "events", "logs_20140328": "logs"}.get(prefix, "sagemaker")
    if environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return "sts"
    return "lambda" if environ.get("PATH_INFO", "").startswith("/2015-03-31/") else "s3"


def _name_service(environ: WSGIEnvironment, signature: Signature) -> None:
    """Put what was verified into the Authorization header: for a presigned URL or a form, moto would only guess it."""
    day, region = signature.day or time.strftime("%Y%m%d"), signature.region or _DEFAULT_REGION
    scope = f"{signature.access_key}/{day}/{region}/{signature.service or 's3'}/aws4_request"
    environ["HTTP_AUTHORIZATION"] = f"{ALGORITHM} Credential={scope}, SignedHeaders=, Signature="


COOKIE = "smdebug-emulator-token"
_COOKIE_VALUE = re.compile(rf"(?:^|;\s*){COOKIE}=([^;\s]+)")


class TokenCheck:
    """Opens the emulator's own API and console to clients with the token: in a header, a cookie, or once in the URL."""

    def __init__(self, token: str) -> None:
        self._token = token

    def refuse(self, environ: WSGIEnvironment) -> WSGIApplication | None:
        """Return the answer to a client without the token, or with it in the URL; None if the request may pass."""
        from werkzeug.wrappers import Response

        header = environ.get("HTTP_AUTHORIZATION", "")
        cookie = _COOKIE_VALUE.search(environ.get("HTTP_COOKIE", ""))
        if self._is_right(header.removeprefix("Bearer ")) or (cookie is not None and self._is_right(cookie[1])):
            return None
        query = parse_qs(environ.get("QUERY_STRING", ""))
        if environ["REQUEST_METHOD"] == "GET" and self._is_right(query.get("token", [""])[0]):
            # From now on a cookie carries the token; the link itself stays in the browser's history.
            address = urlsplit(environ.get("PATH_INFO", "/")).path
            answer = Response(status=303, headers={"Location": address, "Cache-Control": "no-store"})
            secure = environ.get("wsgi.url_scheme") == "https"
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="Strict", path="/", secure=secure)
            return answer
        text = (
            "This emulator requires signatures: its own API and its console ask for its token. "
            "smdebug-emulator open opens the console, and programs send it as Authorization: Bearer TOKEN; it is in "
            "keys.json in the state folder."
        )
        body = json.dumps({"error": text, "code": "AccessDeniedException"})
        return Response(body, 401, {"WWW-Authenticate": "Bearer"}, content_type="application/json")

    def _is_right(self, said: str) -> bool:
        return hmac.compare_digest(said.encode("utf-8", "replace"), self._token.encode())
