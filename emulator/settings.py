"""The emulator's settings: one frozen dataclass, the only reader of the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from emulator.exceptions import StartupError
from emulator.state.disk import DiskBudget, parse_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from emulator.security.keys import Keys

# As images' names begin: a host with a dot or a port, or localhost, and a path in small letters.
_REGISTRY = re.compile(
    r"(localhost|[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+|[a-zA-Z0-9.-]+(?=:\d))(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?"
)
_REGION = re.compile(r"[a-z]{2,3}(-[a-z]+)+-\d")
DEFAULT_ACCOUNT_ID = "123456789012"
DEFAULT_S3_BUCKET = "smdebug-emulator"
# As long as a job of SageMaker's may run.
_LONGEST_SECONDS = 28 * 86_400
_USER = re.compile(r"root|(\d{1,9})(?::(\d{1,9}))?")
_ACCESS_KEY = re.compile(r"[\w-]{4,128}")
_HOST_NAME = re.compile(r"[\w.-]{1,253}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(%[\w.-]+)?")
_HTTP_URL = re.compile(r"https?://[^\s/?#]+/?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.-]+)*/?")
_AGE = re.compile(r"(\d{1,9})([smhd])")
_AGE_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def parse_age(text: str) -> float:
    """Return the seconds of an age such as ``90s``, ``30m``, ``12h`` or ``7d``.

    Raises:
        ValueError: it is none.
    """
    found = _AGE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no age: give a whole number with s, m, h or d")
    return float(int(found[1]) * _AGE_SECONDS[found[2]])


def parse_access_keys(text: str) -> dict[str, str]:
    """Return the secret keys by their ids, of a text such as ``ID:SECRET,ID:SECRET``.

    Raises:
        ValueError: it is none.
    """
    pairs = dict(each.strip().partition(":")[::2] for each in text.split(",") if each.strip())
    if not all(_ACCESS_KEY.fullmatch(key) and secret for key, secret in pairs.items()):
        raise ValueError("it is no list of keys")
    return pairs


def parse_folders(text: str) -> tuple[Path, ...]:
    """Return the folders of a list such as PATH is one."""
    return tuple(Path(each).expanduser().absolute() for each in text.split(os.pathsep) if each)


def parse_host(text: str) -> str:
    """Return an IP address to listen on.

    Raises:
        ValueError: it is none.
    """
    from ipaddress import ip_address  # which hardly a command needs

    return str(ip_address(text))


def parse_file(text: str) -> Path:
    """Return the path of a file; it is named to other processes, so it is absolute."""
    return Path(text).expanduser().absolute()


def parse_user(text: str) -> tuple[int, int]:
    """Return uid and gid of ``root``, ``UID`` or ``UID:GID``.

    Raises:
        ValueError: it is none of these.
    """
    found = _USER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no user: give root, UID or UID:GID, such as 1000:1000")
    uid = int(found[1] or 0)
    return uid, int(found[2] or uid)


def may_choose_user(user: tuple[int, int]) -> bool:
    """Tell whether containers may run as ``user``: what another one's wrote only root can read."""
    return os.getuid() in (0, user[0])


RuntimeChoice = Literal["auto", "docker", "process", "swarm"]
RUNTIME_CHOICES: tuple[RuntimeChoice, ...] = ("auto", "docker", "process", "swarm")
# By the setting that a variable is for: what reads its text, whether the value fits, and what would.
VARIABLES: Mapping[str, tuple[Callable[[str], Any], Callable[[Any], object], str]] = {
    "port": (int, range(65536).__contains__, "give a whole number from 0 to 65535"),
    "runtime": (str, RUNTIME_CHOICES.__contains__, f"use one of {', '.join(RUNTIME_CHOICES)}"),
    "shared_folder": (lambda text: Path(text).absolute(), Path.is_dir, "give a folder that is there"),
    "registry": (str.strip, _REGISTRY.fullmatch, "give HOST[:PORT][/PATH], as images' names begin"),
    "region": (str, _REGION.fullmatch, "give a region of AWS, such as eu-west-1"),
    "account_id": (str, re.compile(r"\d{12}").fullmatch, "give an account's 12 digits"),
    "stop_grace_seconds": (float, lambda seconds: 0 <= seconds <= 86_400, "give a number from 0 to 86400"),
    "job_niceness": (int, range(20).__contains__, "give a whole number from 0 to 19"),
    "max_jobs": (int, lambda number: 1 <= number <= 10_000, "give a whole number from 1 to 10000"),
    "disk_reserve": (parse_size, lambda _: True, "give a size such as 500M or 2G"),
    "retention": (parse_age, lambda _: True, "give an age such as 12h or 7d"),
    "retention_size": (parse_size, lambda _: True, "give a size such as 500M or 2G"),
    "pythons": (
        parse_folders,
        lambda folders: all(each.is_dir() for each in folders),
        "give folders that hold interpreters such as python3.12, separated by colons",
    ),
    "strict_versions": ({"0": False, "1": True}.get, lambda _: True, "use 0 or 1"),
    "container_user": (parse_user, may_choose_user, "give root, UID or UID:GID, and start the emulator as root"),
    "writable_root": ({"0": False, "1": True}.get, lambda _: True, "use 0 or 1"),
    "moto_api": ({"0": False, "1": True}.get, lambda _: True, "use 0 or 1"),
    "require_signature": ({"0": False, "1": True}.get, lambda _: True, "use 0 or 1"),
    "access_keys": (parse_access_keys, lambda _: True, "give ID:SECRET, several separated by commas"),
    "allow_internet": ({"0": False, "1": True}.get, lambda _: True, "use 0 or 1"),
    "host": (parse_host, lambda _: True, "give an IP address of this machine, or 0.0.0.0 for all"),
    "advertise": (str.strip, _HOST_NAME.fullmatch, "give an IP address or a host's name, without a port"),
    "tls": ({"0": False, "1": True}.get, lambda _: True, "use 0 or 1"),
    "tls_certificate": (parse_file, lambda _: True, "give a file"),
    "tls_key": (parse_file, lambda _: True, "give a file"),
    "s3_endpoint": (str.strip, _HTTP_URL.fullmatch, "give a URL such as http://minio.example:9000"),
    "s3_bucket": (str.strip, _BUCKET.fullmatch, "give NAME or NAME/PREFIX"),
}


def check_shared(settings: Settings) -> None:
    """Refuse a folder that all nodes of a Swarm see where those of jobs are not in it.

    Raises:
        StartupError: the text says what to give.
    """
    shared = settings.shared_folder
    if settings.runtime == "swarm" and shared is not None and not settings.state_dir.is_relative_to(shared):
        raise StartupError(
            f"--shared-folder {shared}: the folders of jobs are in {settings.state_dir}, which is not in it. Give a "
            "--state-dir below it, or no --shared-folder: files are then carried to the nodes and from them."
        )


def default_state_dir(environment: Mapping[str, str]) -> Path:
    """Where state is kept unless said otherwise: the XDG state folder."""
    base = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "smdebug-emulator"


def format_url(scheme: str, address: str, port: int) -> str:
    """Write where a server answers."""
    return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """What one emulator runs with.

    Attributes:
        port: TCP port on 127.0.0.1 (and on the gateway address of the emulator's Docker network).
        runtime: which container back end; ``auto`` takes Docker when an engine answers, else processes.
        state_dir: folder of everything that survives a restart.
        shared_folder: what every node of a Swarm sees at the same path; the state folder is below it. None
            where what jobs read and write is carried to the nodes and from them.
        registry: what the names of images begin with that a Swarm's nodes pull; None where they come from the manager.
        account_id: 12 digits, the account of whoever signs with a key that names or belongs to no other.
        region: used where a request's signature names none.
        stop_grace_seconds: between SIGTERM and SIGKILL when a job is stopped (AWS: 120).
        tensor_poll_seconds: how often a running job's output folder is looked at.
        job_niceness: how far jobs that are local processes stand back behind the service and its clients.
        max_jobs: so many instances of training jobs run at once, others wait; None for what the machine's processors
            and memory bear.
        faults: what fails on purpose, each as ``faults.parse_fault`` reads it.
        disk_reserve: so many bytes of the state folder's disk stay free: what would take them is refused.
        retention: what ended jobs left is removed when it is so many seconds old; None for never.
        retention_size: so many bytes of it are kept, the newest; None for all.
        moto_api: whether moto's own controls below ``/moto-api/`` answer, its reset and recorder among them.
        allow_internet: whether containers of the Docker back end reach more than the emulator and their job's hosts.
        require_signature: whether requests need a valid signature and policies that allow them, and the emulator's own
            API its token.
        access_keys: secret keys by their ids, which sign as the account's root where signatures are required.
        keys: the emulator's own; None before it starts.
        pythons: folders of interpreters that Lambda functions may ask for, looked into before PATH.
        strict_versions: whether a job is refused whose image is of a version that no environment here holds.
        container_user: uid and gid of Docker containers; the back end's choice when None.
        writable_root: whether the Docker containers of jobs may write to all of their file system.
        host: IP address to listen on beside 127.0.0.1, 0.0.0.0 for all of this machine's; None for no other.
        advertise: the address or name by which other machines know this one; None for ``host``.
        tls: whether it answers over TLS on 127.0.0.1, too; where it listens for other machines it always does.
        tls_certificate: file of the certificate that it shows, and of its issuers; None for a generated one.
        tls_key: file of that certificate's key.
        ca_bundle: the file that clients are to trust; None before it starts, and where it answers without TLS.
        s3_endpoint: URL of another S3, in which all that survives a restart is kept, too; None for no such copy.
        s3_bucket: the bucket there, or what is below a prefix in it; ``DEFAULT_S3_BUCKET`` when None.
    """

    port: int = 4580
    runtime: RuntimeChoice = "auto"
    state_dir: Path = field(default_factory=lambda: default_state_dir(os.environ))
    shared_folder: Path | None = None
    registry: str | None = None
    account_id: str = DEFAULT_ACCOUNT_ID
    region: str = "us-east-1"
    stop_grace_seconds: float = 120.0
    tensor_poll_seconds: float = 0.05
    job_niceness: int = 10
    max_jobs: int | None = None
    faults: tuple[str, ...] = ()
    disk_reserve: int = 256 * 1024**2
    retention: float | None = None
    retention_size: int | None = None
    moto_api: bool = False
    allow_internet: bool = False
    require_signature: bool = False
    access_keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    keys: Keys | None = None
    pythons: tuple[Path, ...] = ()
    strict_versions: bool = False
    container_user: tuple[int, int] | None = None
    writable_root: bool = False
    host: str | None = None
    advertise: str | None = None
    tls: bool = False
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    ca_bundle: Path | None = None
    s3_endpoint: str | None = None
    s3_bucket: str | None = None

    def __post_init__(self) -> None:
        """Folders are mounted into containers and named to other processes, so the state folder is absolute."""
        object.__setattr__(self, "state_dir", Path(self.state_dir).expanduser().absolute())

    @property
    def disk(self) -> DiskBudget:
        """The disk of the state folder."""
        return DiskBudget(self.state_dir, self.disk_reserve)

    @property
    def endpoint_url(self) -> str:
        """Where clients on this machine reach the emulator."""
        return format_url(self.scheme, "127.0.0.1", self.port)

    @property
    def scheme(self) -> str:
        """``https`` where it answers over TLS."""
        return "http" if self.ca_bundle is None else "https"

    @property
    def container_credentials(self) -> Mapping[str, str]:
        """Credentials that the emulator's own clients sign with, as the account: good for nothing but this emulator."""
        secret = "smdebug-emulator" if self.keys is None else self.keys.secret
        return {"AWS_ACCESS_KEY_ID": self.account_id, "AWS_SECRET_ACCESS_KEY": secret}

    def issue_credentials(
        self, role_arn: str | None, session: str, seconds: float, account_id: str | None = None
    ) -> Mapping[str, str]:
        """Make what a container signs with: credentials of its own role, good for so many seconds and an hour.

        Args:
            role_arn: the role that the request names; where it names none, the credentials can be used for nothing
                where signatures are required.
            session: who has them, such as a job's name.
            seconds: how long the container may run.
            account_id: whose container it is; this account's when None.
        """
        if self.keys is None:
            return self.container_credentials
        role = role_arn or f"arn:aws:iam::{self.account_id}:role/none"
        return self.keys.issue(role, session[:64], account_id or self.account_id, min(seconds, _LONGEST_SECONDS) + 3600)


def settings_from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Read SMDEBUG_EMULATOR_STATE_DIR, and a variable of each setting in ``_VARIABLES``.

    Raises:
        StartupError: a value that cannot be used; the text names the variable, the value and what fits.
    """
    env = os.environ if environment is None else environment
    given: dict[str, Any] = {"state_dir": env.get("SMDEBUG_EMULATOR_STATE_DIR") or default_state_dir(env)}
    for member, (parse, fits, wanted) in VARIABLES.items():
        name = f"SMDEBUG_EMULATOR_{member.upper()}"
        if (text := env.get(name)) is not None:
            try:
                given[member] = parse(text)
            except ValueError:
                given[member] = None
            if given[member] is None or not fits(given[member]):
                raise StartupError(f"{name} is {text!r}: {wanted}.")
    return Settings(**given)
