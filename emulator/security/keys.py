"""The emulator's secret, and temporary role credentials sealed with it.

The secret key also signs requests of the accounts and grants access to the emulator's own API.

Role credentials are not stored: their session token contains the owner and the expiry, and is sealed with the secret
key, from which their own secret key is derived. They can therefore be checked after a restart, and take no memory.
"""

import base64
import hmac
import json
import os
import secrets
import string
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from emulator.exceptions import StartupError

NAME = "keys.json"
_PREFIX = "smde."
_LETTERS = string.ascii_uppercase + "234567"


@dataclass(frozen=True, slots=True)
class Session:
    """The owner and expiry of temporary credentials.

    Attributes:
        access_key: the access key id.
        role_arn: the role.
        name: the session name, such as the job's name.
        account: the account of the job or function.
        expires: epoch seconds.
    """

    access_key: str
    role_arn: str
    name: str
    account: str
    expires: float

    @property
    def arn(self) -> str:
        """The ARN of the session in STS and IAM."""
        partition = self.role_arn.split(":")[1] if self.role_arn.count(":") > 4 else "aws"
        role = self.role_arn.rpartition("/")[2]
        return f"arn:{partition}:sts::{self.account}:assumed-role/{role}/{self.name}"


@dataclass(frozen=True, slots=True)
class Keys:
    """Secrets of the emulator and its user.

    Attributes:
        secret: signs as any account, with the account's number as the access key; seals role credentials.
        token: grants access to the emulator's own API and its console.
    """

    secret: str = field(repr=False)
    token: str = field(repr=False)

    def issue(self, role_arn: str, name: str, account: str, seconds: float) -> dict[str, str]:
        """Issue temporary credentials, as the environment variables that AWS clients read.

        Args:
            role_arn: the role.
            name: the session name.
            account: the account of the job or function; a role of another account has no policies there.
            seconds: how long the credentials are valid.
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
        """Read a session token; return None if this emulator did not issue it. It may have expired."""
        if not token.startswith(_PREFIX):
            return None
        content, _, seal = token.removeprefix(_PREFIX).partition(".")
        if not hmac.compare_digest(self._seal("token", content).encode(), seal.encode("utf-8", "replace")):
            return None
        return Session(**json.loads(base64.urlsafe_b64decode(content + "=" * (-len(content) % 4))))

    def find_secret(self, token: str) -> str:
        """Return the secret key that belongs to a session token."""
        return self._seal("key", token)

    def _seal(self, purpose: str, text: str) -> str:
        digest = hmac.digest(self.secret.encode(), f"{purpose}:{text}".encode("utf-8", "replace"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def load_keys(state_dir: Path) -> Keys:
    """Read the keys of a state folder; generate them if there are none. Only their owner may read the file.

    Raises:
        StartupError: the file does not contain keys.
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
            f"The keys in {path} cannot be read ({error}): remove the file. Running jobs then lose their credentials."
        ) from error
    return found
