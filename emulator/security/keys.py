"""The emulator's secret, and temporary role credentials sealed with it.

The secret also signs for the accounts and opens the emulator's own API.

Credentials of a role are not kept anywhere: the token says whose they are and until when, and is sealed with the
secret, as is the key that belongs to it. So they are checked after a restart, and a million of them take no memory.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import secrets
import string
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from emulator.exceptions import StartupError

if TYPE_CHECKING:
    from pathlib import Path

NAME = "keys.json"
_PREFIX = "smde."
_LETTERS = string.ascii_uppercase + "234567"


@dataclass(frozen=True, slots=True)
class Session:
    """Whose temporary credentials those are.

    Attributes:
        access_key: the key's id.
        role_arn: the role.
        name: of the session, such as the job's.
        account: of whose job or function they are.
        expires: epoch seconds.
    """

    access_key: str
    role_arn: str
    name: str
    account: str
    expires: float

    @property
    def arn(self) -> str:
        """The ARN by which STS and IAM name it."""
        partition = self.role_arn.split(":")[1] if self.role_arn.count(":") > 4 else "aws"
        role = self.role_arn.rpartition("/")[2]
        return f"arn:{partition}:sts::{self.account}:assumed-role/{role}/{self.name}"


@dataclass(frozen=True, slots=True)
class Keys:
    """What nobody but the emulator and its user knows.

    Attributes:
        secret: signs as any account, by the account's number as key; seals the credentials of roles.
        token: opens the emulator's own API and its console.
    """

    secret: str = field(repr=False)
    token: str = field(repr=False)

    def issue(self, role_arn: str, name: str, account: str, seconds: float) -> dict[str, str]:
        """Make temporary credentials, as the variables that AWS's clients read.

        Args:
            role_arn: the role.
            name: of the session.
            account: of the job or the function; a role of another one has no policies there.
            seconds: how long they are good.
        """
        key = "ASIA" + "".join(secrets.choice(_LETTERS) for _ in range(16))
        session = Session(key, role_arn, name, account, round(time.time() + seconds))
        content = base64.urlsafe_b64encode(json.dumps(asdict(session)).encode()).decode().rstrip("=")
        token = f"{_PREFIX}{content}.{self._seal('token', content)}"
        return {
            "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": self.find_secret(token),
            "AWS_SESSION_TOKEN": token,
        }

    def read_session(self, token: str) -> Session | None:
        """Read a token; None where it is none of this emulator's. It may have expired."""
        if not token.startswith(_PREFIX):
            return None
        content, _, seal = token.removeprefix(_PREFIX).partition(".")
        if not hmac.compare_digest(self._seal("token", content).encode(), seal.encode("utf-8", "replace")):
            return None
        return Session(**json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4))))

    def find_secret(self, token: str) -> str:
        """Find the secret key that belongs to a token."""
        return self._seal("key", token)

    def _seal(self, purpose: str, text: str) -> str:
        digest = hmac.digest(self.secret.encode(), f"{purpose}:{text}".encode("utf-8", "replace"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def load_keys(state_dir: Path) -> Keys:
    """Read the keys of a state folder; make them where there are none. Only their owner may read the file.

    Raises:
        StartupError: the file holds no keys.
    """
    path = state_dir / NAME
    if not path.exists():
        keys = Keys(secrets.token_urlsafe(30), secrets.token_urlsafe(30))
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(asdict(keys), file)
        partial.replace(path)
    try:
        found = Keys(**json.loads(path.read_text()))
        if not (len(found.secret) >= 30 and len(found.token) >= 30):
            raise ValueError("they are too short")  # noqa: TRY301 - as any other damage
    except (OSError, ValueError, TypeError) as error:
        raise StartupError(
            f"The keys in {path} cannot be read ({error}): remove the file, and jobs that run lose their credentials."
        ) from error
    return found
