"""Emulator settings: one frozen dataclass, the only reader of the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from container_runtime.selection import AUTO, list_choices
from emulator.exceptions import StartupError
from emulator.options import (
    Option,
    check_fault,
    check_own_image,
    flag,
    may_choose_user,
    option,
    parse_access_keys,
    parse_age,
    parse_file,
    parse_folders,
    parse_host,
    parse_names,
    parse_runtime,
    parse_user,
)
from emulator.quotas import parse_quota_file
from emulator.state.disk import DiskBudget, parse_size
from emulator.state.job_stores import DEFAULT_ACCOUNT_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from emulator.security.keys import Keys

# The beginning of an image name: a host with a dot or a port, or localhost, and a path in lower case.
_REGISTRY = re.compile(
    r"(localhost|[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+|[a-zA-Z0-9.-]+(?=:\d))(:\d+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*/?"
)
_REGION = re.compile(r"[a-z]{2,3}(-[a-z]+)+-\d")
DEFAULT_S3_BUCKET = "smdebug-emulator"
# The longest run time of a SageMaker job.
_LONGEST_SECONDS = 28 * 86_400
_HOST_NAME = re.compile(r"[\w.-]{1,253}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(%[\w.-]+)?")
_ACCEPTED_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,252})")
_IMAGE = re.compile(r"[a-z0-9][a-z0-9._-]*")
_HTTP_URL = re.compile(r"https?://[^\s/?#]+/?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.-]+)*/?")

# What the options of sizes have in common.
_SIZE = {"parse": parse_size, "wanted": "give a size such as 500M or 2G", "metavar": "SIZE"}


def default_state_dir(environment: Mapping[str, str]) -> Path:
    """Return the default state folder, in the XDG state folder."""
    base = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "smdebug-emulator"


def format_url(scheme: str, address: str, port: int) -> str:
    """Format the URL of a server."""
    return f"{scheme}://[{address}]:{port}" if ":" in address else f"{scheme}://{address}:{port}"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one emulator. Each user setting is declared here once, with its option and its description.

    Attributes:
        state_dir: the folder of everything that survives a restart.
        tensor_poll_seconds: how often the output folder of a running job is polled.
        keys: the emulator's own keys; None before it starts.
        ca_bundle: the CA file for clients; None before the start, and without TLS.
    """

    port: int = option(
        4580,
        parse=int,
        fits=range(65536).__contains__,
        wanted="give a whole number from 0 to 65535",
        metavar="NUMBER",
        help="TCP port; 0 for any free one.",
        default_words="4580",
    )
    runtime: str = option(
        AUTO,
        parse=parse_runtime,
        wanted="",
        choices=list_choices,
        help="How containers run: docker, process (as local processes), swarm (on the nodes of a Docker Swarm), or "
        "another installed back end. auto is docker if an engine is running, else process.",
        default_words="auto",
    )
    shared_folder: Path | None = option(
        None,
        parse=parse_file,
        fits=Path.is_dir,
        wanted="give an existing folder",
        metavar="DIRECTORY",
        help="Folder that every Swarm node has at the same path, such as an NFS mount. It must contain the state "
        "folder. Without this option, job files are copied to the nodes and back.",
    )
    registry: str | None = option(
        None,
        parse=str.strip,
        fits=_REGISTRY.fullmatch,
        wanted="give HOST[:PORT][/PATH], the beginning of an image name",
        metavar="PREFIX",
        help="Registry from which Swarm nodes pull images, as PREFIX/NAME. Without it, this machine sends the images.",
    )
    own_images: tuple[str, ...] = option(
        (),
        parse=check_own_image,
        wanted="",
        name="image",
        metavar="NAME=IMAGE",
        multiple=True,
        help="Run jobs that request the image NAME or NAME:VERSION in your own IMAGE, such as "
        "pytorch-training:2.3=my/dlc:2.3; @FILE reads a file of such lines. Needs Docker. May be given several times.",
        in_environment=False,
    )
    no_smdebug: bool = flag("Do not add this project's smdebug to the images of --image, which have their own or none.")
    state_dir: Path = field(default_factory=lambda: default_state_dir(os.environ))
    account_id: str = option(
        DEFAULT_ACCOUNT_ID,
        parse=str,
        fits=re.compile(r"\d{12}").fullmatch,
        wanted="give an account's 12 digits",
        name="account",
        metavar="NUMBER",
        help="Account number, 12 digits, for requests whose access key belongs to no account.",
        default_words=DEFAULT_ACCOUNT_ID,
    )
    region: str = option(
        "us-east-1",
        parse=str,
        fits=_REGION.fullmatch,
        wanted="give an AWS region, such as eu-west-1",
        help="Region for requests whose signature names none.",
        on_command_line=False,
    )
    stop_grace_seconds: float = option(
        120.0,
        parse=float,
        fits=lambda seconds: 0 <= seconds <= 86_400,
        wanted="give a number from 0 to 86400",
        help="Seconds between SIGTERM and SIGKILL when a job is stopped; 120 on AWS.",
        on_command_line=False,
    )
    tensor_poll_seconds: float = 0.05
    job_niceness: int = option(
        10,
        parse=int,
        fits=range(20).__contains__,
        wanted="give a whole number from 0 to 19",
        help="Niceness of jobs that run as local processes, so that the service and its clients have priority.",
        on_command_line=False,
    )
    faults: tuple[str, ...] = option(
        (),
        parse=check_fault,
        wanted="",
        name="fault",
        metavar="SCOPE:FAULTS",
        multiple=True,
        help="Inject faults, such as s3:error=0.1,delay=200ms. Other scopes are events, lambda (timeout, throttle) and "
        "jobs (capacity, interrupt). May be given several times.",
        in_environment=False,
    )
    max_jobs: int | None = option(
        None,
        parse=int,
        fits=lambda number: 1 <= number <= 10_000,
        wanted="give a whole number from 1 to 10000",
        metavar="NUMBER",
        help="Maximum number of training instances that run at once; other jobs wait as Pending.",
        default_words="by processors and memory",
    )
    quotas: Path | None = option(
        None,
        parse=parse_quota_file,
        wanted="",
        metavar="FILE",
        help='JSON file of instance quotas: an object such as {"ml.m5.large for training job usage": 2}, or the output '
        "of aws service-quotas list-service-quotas. Jobs that exceed a quota are rejected.",
        default_words="none",
    )
    disk_reserve: int = option(
        256 * 1024**2,
        **_SIZE,
        help="Disk space to keep free, such as 2G. Requests that would use it are rejected.",
        default_words="256M",
    )
    container_user: tuple[int, int] | None = option(
        None,
        parse=parse_user,
        fits=may_choose_user,
        wanted="give root, UID or UID:GID, and start the emulator as root",
        metavar="USER",
        help="User of Docker containers if the emulator runs as root: UID, UID:GID, or root (as on AWS).",
        default_words="1000",
        write="{0[0]}:{0[1]}".format,
    )
    warm: tuple[str, ...] = option(
        (),
        parse=parse_names,
        fits=lambda names: all(map(_IMAGE.fullmatch, names)),
        wanted="give names of images separated by commas, such as pytorch-training,tensorflow-training",
        metavar="IMAGES",
        help="Import the frameworks of these images, separated by commas, when the emulator starts, so that jobs start "
        "sooner: as forks of a warm interpreter, or in spare containers (two for an image that is named twice). The "
        "frameworks of other images are imported for their first job, and kept until ten minutes after the last.",
        write=",".join,
    )
    no_warm: bool = flag("Start each container with a new interpreter, without an imported framework.")
    warm_memory: int | None = option(
        None,
        **_SIZE,
        help="Maximum memory of spare Docker containers, which wait for jobs with their framework imported.",
        default_words="a quarter of the machine's memory",
    )
    writable_root: bool = flag(
        "Let Docker containers of jobs write anywhere in their file system, not only to /opt/ml, /tmp and home."
    )
    retention: float | None = option(
        None,
        parse=parse_age,
        wanted="give an age such as 12h or 7d",
        metavar="AGE",
        help="Remove the files of ended jobs, as prune does, at this age, such as 7d.",
        default_words="never",
        write="{:.0f}s".format,
    )
    retention_size: int | None = option(
        None,
        **_SIZE,
        help="Maximum size of the files of ended jobs, such as 2G; the oldest are removed.",
        default_words="all",
    )
    moto_api: bool = flag("Serve moto's controls below /moto-api/ (reset, seed, recorder), which need no signature.")
    require_signature: bool = flag(
        "Accept only signed requests that IAM policies allow; the emulator's own API requires its token. Valid keys "
        "are those of IAM and STS, and those in the variable SMDEBUG_EMULATOR_ACCESS_KEYS=ID:SECRET,…."
    )
    access_keys: Mapping[str, str] = field(
        default_factory=dict,
        repr=False,
        metadata={
            "option": Option(
                parse=parse_access_keys,
                wanted="give ID:SECRET, several separated by commas",
                help="Access keys of the account's root user, if signatures are required.",
                on_command_line=False,
            )
        },
    )
    keys: Keys | None = None
    pythons: tuple[Path, ...] = option(
        (),
        parse=parse_folders,
        fits=lambda folders: all(each.is_dir() for each in folders),
        wanted="give folders that hold interpreters such as python3.12, separated by colons",
        help="Folders with Python interpreters for Lambda functions, searched before PATH.",
        on_command_line=False,
    )
    allow_internet: bool = flag(
        "Let Docker containers reach the internet and everything else that this machine reaches. Otherwise they reach "
        "only this emulator and the other hosts of their job."
    )
    host: str | None = option(
        None,
        parse=parse_host,
        wanted="give an IP address of this machine, or 0.0.0.0 for all",
        metavar="ADDRESS",
        help="Also listen on this IP address, for other machines; 0.0.0.0 for all addresses. Turns on TLS and "
        "--require-signature.",
    )
    advertise: str | None = option(
        None,
        parse=str.strip,
        fits=_HOST_NAME.fullmatch,
        wanted="give an IP address or a host name, without a port",
        metavar="ADDRESS",
        help="Address or name by which other machines reach this one; checked when the emulator starts.",
        default_words="--host's",
    )
    behind: Literal["loopback"] | None = option(
        None,
        parse=str,
        fits=("loopback",).__contains__,
        wanted="use loopback",
        choices=lambda: ("loopback",),
        help="For an emulator in a container whose port is published on the host's loopback interface only (docker run "
        "-p 127.0.0.1:4580:4580): listen on the container's addresses, without TLS and signatures.",
    )
    accepted_hosts: tuple[str, ...] = option(
        (),
        parse=lambda text: parse_names(text.lower()),
        fits=lambda names: all(map(_ACCEPTED_HOST.fullmatch, names)),
        wanted="give host names separated by commas",
        metavar="NAMES",
        help="Additional host names by which clients address this emulator, separated by commas, such as the name of "
        "its service in a compose file. Requests to other names are rejected.",
        write=",".join,
    )
    tls: bool = flag("Use TLS even if only this machine can connect.")
    tls_certificate: Path | None = option(
        None,
        parse=parse_file,
        wanted="give a file",
        metavar="FILE",
        help="Server certificate in PEM, followed by the certificates of its issuers.",
        default_words="a generated one",
    )
    tls_key: Path | None = option(
        None, parse=parse_file, wanted="give a file", metavar="FILE", help="Private key of the certificate, in PEM."
    )
    ca_bundle: Path | None = None
    s3_endpoint: str | None = option(
        None,
        parse=str.strip,
        fits=_HTTP_URL.fullmatch,
        wanted="give a URL such as http://minio.example:9000",
        metavar="URL",
        help="URL of a real S3, such as AWS's or MinIO's, for a copy of the state. An emulator with an empty state "
        "folder starts from that copy. Uses the credentials that boto3 finds.",
    )
    s3_bucket: str | None = option(
        None,
        parse=str.strip,
        fits=_BUCKET.fullmatch,
        wanted="give NAME or NAME/PREFIX",
        metavar="NAME[/PREFIX]",
        help="Existing bucket at --s3-endpoint, and a prefix in it.",
        default_words=DEFAULT_S3_BUCKET,
    )
    lenient_roles: bool = flag(
        "Accept jobs whose role does not exist. Otherwise they are rejected, once IAM has a role that SageMaker may "
        "assume, besides those that run and env create."
    )
    strict_versions: bool = flag(
        "Reject jobs whose framework version has no local image, instead of using the nearest version."
    )

    def __post_init__(self) -> None:
        """Make the state folder absolute: folders are mounted into containers and passed to other processes."""
        object.__setattr__(self, "state_dir", Path(self.state_dir).expanduser().absolute())

    @property
    def disk(self) -> DiskBudget:
        """The disk budget of the state folder."""
        return DiskBudget(self.state_dir, self.disk_reserve)

    @property
    def endpoint_url(self) -> str:
        """The emulator's URL for clients on this machine."""
        return format_url(self.scheme, "127.0.0.1", self.port)

    @property
    def scheme(self) -> str:
        """``https`` if it serves TLS, else ``http``."""
        return "http" if self.ca_bundle is None else "https"

    @property
    def container_credentials(self) -> Mapping[str, str]:
        """Credentials of the emulator's own clients, which sign as the account; valid for this emulator only."""
        secret = "smdebug-emulator" if self.keys is None else self.keys.secret
        return {"AWS_ACCESS_KEY_ID": self.account_id, "AWS_SECRET_ACCESS_KEY": secret}

    def issue_credentials(
        self, role_arn: str | None, session: str, seconds: float, account_id: str | None = None
    ) -> Mapping[str, str]:
        """Issue a container's credentials for its own role; they are valid for ``seconds`` and one hour more.

        Args:
            role_arn: the role in the request. If the request names none and signatures are required, the credentials
                allow nothing.
            session: the session name, such as a job's name.
            seconds: how long the container may run.
            account_id: the container's account; None for this account.
        """
        if self.keys is None:
            return self.container_credentials
        role = role_arn or f"arn:aws:iam::{self.account_id}:role/none"
        return self.keys.issue(role, session[:64], account_id or self.account_id, min(seconds, _LONGEST_SECONDS) + 3600)


def list_options() -> dict[str, Option]:
    """Return the user settings by field name."""
    return {each.name: each.metadata["option"] for each in fields(Settings) if "option" in each.metadata}


def name_variable(field_name: str) -> str:
    """Return the environment variable of a setting."""
    return f"SMDEBUG_EMULATOR_{field_name.upper()}"


def settings_from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Read SMDEBUG_EMULATOR_STATE_DIR, and the variable of each option that has one.

    Raises:
        StartupError: a value is invalid; the text names the variable, the value and the valid values.
    """
    env = os.environ if environment is None else environment
    given: dict[str, Any] = {"state_dir": env.get("SMDEBUG_EMULATOR_STATE_DIR") or default_state_dir(env)}
    for field_name, each in list_options().items():
        name = name_variable(field_name)
        if each.in_environment and (text := env.get(name)) is not None:
            try:
                given[field_name] = each.read(text)
            except ValueError as error:
                raise StartupError(f"{name} is {text!r}: {error}.") from None
    return Settings(**given)
