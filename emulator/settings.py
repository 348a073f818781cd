"""The emulator's settings: one frozen dataclass, the only reader of the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from emulator.exceptions import StartupError

if TYPE_CHECKING:
    from collections.abc import Mapping

_REGION = re.compile(r"[a-z]{2,3}(-[a-z]+)+-\d")
RuntimeChoice = Literal["auto", "docker", "process"]
RUNTIME_CHOICES: tuple[RuntimeChoice, ...] = ("auto", "docker", "process")


def default_state_dir(environment: Mapping[str, str]) -> Path:
    """Where state is kept unless said otherwise: the XDG state folder."""
    base = environment.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "smdebug-emulator"


@dataclass(frozen=True, slots=True)
class Settings:
    """What one emulator runs with.

    Attributes:
        port: TCP port on 127.0.0.1 (and on the gateway address of the emulator's Docker network).
        runtime: which container back end; ``auto`` takes Docker when an engine answers, else processes.
        state_dir: folder of everything that survives a restart.
        account_id: 12 digits, the account of every resource.
        region: used where a request's signature names none.
        stop_grace_seconds: between SIGTERM and SIGKILL when a job is stopped (AWS: 120).
        tensor_poll_seconds: how often a running job's output folder is looked at.
        moto_api: whether moto's own controls below ``/moto-api/`` answer, its reset and recorder among them.
    """

    port: int = 4580
    runtime: RuntimeChoice = "auto"
    state_dir: Path = field(default_factory=lambda: default_state_dir(os.environ))
    account_id: str = "123456789012"
    region: str = "us-east-1"
    stop_grace_seconds: float = 120.0
    tensor_poll_seconds: float = 0.05
    moto_api: bool = False

    def __post_init__(self) -> None:
        """Folders are mounted into containers and named to other processes, so the state folder is absolute."""
        object.__setattr__(self, "state_dir", Path(self.state_dir).expanduser().absolute())

    @property
    def endpoint_url(self) -> str:
        """Where clients on this machine reach the emulator."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def container_credentials(self) -> Mapping[str, str]:
        """Credentials that containers sign with: made up, and good for nothing but this emulator."""
        return {"AWS_ACCESS_KEY_ID": "smdebug-emulator", "AWS_SECRET_ACCESS_KEY": "smdebug-emulator"}


def settings_from_environment(environment: Mapping[str, str] | None = None) -> Settings:
    """Read SMDEBUG_EMULATOR_PORT, _RUNTIME, _STATE_DIR, _REGION, _STOP_GRACE_SECONDS and _MOTO_API.

    Raises:
        StartupError: a value that cannot be used; the text names the variable, the value and what fits.
    """
    env = os.environ if environment is None else environment
    runtime = env.get("SMDEBUG_EMULATOR_RUNTIME", "auto")
    if runtime not in RUNTIME_CHOICES:
        raise StartupError(f"SMDEBUG_EMULATOR_RUNTIME is {runtime!r}: use one of {', '.join(RUNTIME_CHOICES)}.")
    state_dir = env.get("SMDEBUG_EMULATOR_STATE_DIR")
    return Settings(
        port=_read_port(env),
        runtime=runtime,
        state_dir=Path(state_dir) if state_dir else default_state_dir(env),
        region=_read_region(env),
        stop_grace_seconds=_read_number(env, "SMDEBUG_EMULATOR_STOP_GRACE_SECONDS", 120.0),
        moto_api=_read_switch(env, "SMDEBUG_EMULATOR_MOTO_API"),
    )


def _read_port(env: Mapping[str, str]) -> int:
    number = _read_number(env, "SMDEBUG_EMULATOR_PORT", 4580.0, upper=65535)
    if not number.is_integer():
        raise StartupError(f"SMDEBUG_EMULATOR_PORT is '{number:g}': give a whole number from 0 to 65535.")
    return int(number)


def _read_region(env: Mapping[str, str]) -> str:
    region = env.get("SMDEBUG_EMULATOR_REGION", "us-east-1")
    if not _REGION.fullmatch(region):
        raise StartupError(f"SMDEBUG_EMULATOR_REGION is {region!r}: give a region of AWS, such as eu-west-1.")
    return region


def _read_switch(env: Mapping[str, str], name: str) -> bool:
    text = env.get(name, "0")
    if text not in ("0", "1"):
        raise StartupError(f"{name} is {text!r}: use 0 or 1.")
    return text == "1"


def _read_number(env: Mapping[str, str], name: str, default: float, *, upper: float = 86_400) -> float:
    text = env.get(name)
    if text is None:
        return default
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= upper:
        raise StartupError(f"{name} is {text!r}: give a number from 0 to {upper:g}.")
    return number
