"""Principals of access keys, and the policies that apply to them."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qs
from wsgiref.types import WSGIEnvironment

from emulator.moto_services.iam.policy_simulation import list_documents
from emulator.moto_services.replacements import replaced
from emulator.security.keys import Keys, Session

_SESSIONS_KNOWN = 4096


class Principal(NamedTuple):
    """The signer of a request.

    Attributes:
        arn: the ARN of the user or the assumed role; the ARN of the account's root user if everything is allowed.
        account: the account's number.
        secret: the secret access key.
        token: the session token of temporary credentials; None for other credentials.
        expires: the expiration time in epoch seconds; None if the credentials do not expire.
        documents: lists the principal's policy documents; None if everything is allowed.
    """

    arn: str
    account: str
    secret: str
    token: str | None = None
    expires: float | None = None
    documents: Callable[[], list[str]] | None = None


def find_principal(access_key: str) -> Principal | None:
    """Find the user or the assumed role with an access key; None if the key is inactive or unknown."""
    from moto.iam.models import iam_backends
    from moto.sts.models import sts_backends

    for account, partitions in list(iam_backends.items()):
        for partition, backend in list(partitions.items()):
            key: Any = backend.access_keys.get(access_key)
            if key is None or getattr(key, "status", "Active") != "Active":
                continue
            for role in sts_backends[account][partition].assumed_roles:
                if role.access_key_id == access_key:
                    documents = list_role_documents(account, role.role_arn)
                    expires = role.expiration.timestamp()
                    return Principal(
                        role.arn, str(account), role.secret_access_key, role.session_token, expires, documents
                    )
            user: Any = backend.users.get(key.user_name)
            if user is not None:
                policies = partial(_list_policies, backend, user)
                return Principal(user.arn, str(account), key.secret_access_key, documents=policies)
    return None


def _list_policies(backend: Any, user: Any) -> list[str]:
    return list(list_documents(backend, "user", user))


def list_role_documents(account: str, role_arn: str) -> Callable[[], list[str]]:
    """Return a function that lists a role's policy documents. The list is empty if the role does not exist."""

    def list_them() -> list[str]:
        from moto.iam.models import iam_backends

        for backend in list(iam_backends[account].values()):
            for role in list(backend.roles.values()):
                if role.arn == role_arn:
                    return list(list_documents(backend, "role", role))
        return []

    return list_them


class KnownSessions:
    """The sessions of credentials that the emulator itself issued and that have sent requests, by access key.

    moto's STS needs them for GetCallerIdentity.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_key: OrderedDict[str, Session] = OrderedDict()

    def note(self, session: Session) -> None:
        """Store a session. If there are too many, the least recently used one is dropped."""
        with self._lock:
            self._by_key[session.access_key] = session
            self._by_key.move_to_end(session.access_key)
            if len(self._by_key) > _SESSIONS_KNOWN:
                self._by_key.popitem(last=False)

    def known_to_sts(self) -> AbstractContextManager[None]:
        """Make moto's GetCallerIdentity respond for these sessions."""
        from moto.sts.models import STSBackend

        find = STSBackend.get_caller_identity

        def get_caller_identity(backend: Any, access_key_id: str, region: str) -> tuple[str, str, str]:
            session = self._by_key.get(access_key_id)
            if session is None or session.expires < time.time():
                return find(backend, access_key_id, region)
            return f"AROA{session.access_key[4:]}:{session.name}", session.arn, session.account

        return replaced(STSBackend, get_caller_identity=get_caller_identity)


KNOWN_SESSIONS = KnownSessions()


def note_session(environ: WSGIEnvironment, keys: Keys) -> str | None:
    """Make a request's session known to STS and return its account; None if the emulator did not issue its token."""
    token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
    if not token and "X-Amz-Security-Token=" in environ.get("QUERY_STRING", ""):
        token = parse_qs(environ["QUERY_STRING"]).get("X-Amz-Security-Token", [""])[0]
    session = keys.read_session(token) if token else None
    if session is None:
        return None
    KNOWN_SESSIONS.note(session)
    return session.account
