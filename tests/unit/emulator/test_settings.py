import os
from pathlib import Path

import pytest

from emulator.exceptions import StartupError
from emulator.options import may_choose_user, parse_user
from emulator.settings import default_state_dir, settings_from_environment


def test_defaults() -> None:
    settings = settings_from_environment({"XDG_STATE_HOME": "/x"})
    assert settings.port == 4580
    assert settings.runtime == "auto"
    assert not settings.moto_api
    assert not settings.allow_internet
    assert settings.state_dir == Path("/x/smdebug-emulator")
    assert settings.endpoint_url == "http://127.0.0.1:4580"


def test_every_variable() -> None:
    settings = settings_from_environment(
        {
            "SMDEBUG_EMULATOR_PORT": "0",
            "SMDEBUG_EMULATOR_RUNTIME": "docker",
            "SMDEBUG_EMULATOR_STATE_DIR": "~/state",
            "SMDEBUG_EMULATOR_REGION": "eu-west-1",
            "SMDEBUG_EMULATOR_STOP_GRACE_SECONDS": "1.5",
            "SMDEBUG_EMULATOR_MOTO_API": "1",
            "SMDEBUG_EMULATOR_ALLOW_INTERNET": "1",
            "SMDEBUG_EMULATOR_RETENTION": "7d",
            "SMDEBUG_EMULATOR_RETENTION_SIZE": "2G",
            "SMDEBUG_EMULATOR_PYTHONS": "~:/usr/bin",
            "SMDEBUG_EMULATOR_CONTAINER_USER": f"{os.getuid()}:7",
            "SMDEBUG_EMULATOR_WRITABLE_ROOT": "1",
        }
    )
    assert (settings.port, settings.runtime, settings.region) == (0, "docker", "eu-west-1")
    assert settings.state_dir == Path.home() / "state"
    assert settings.stop_grace_seconds == 1.5
    assert (settings.retention, settings.retention_size) == (7 * 86_400, 2 * 1024**3)
    assert settings.pythons == (Path.home(), Path("/usr/bin"))
    assert settings.moto_api
    assert settings.container_user == (os.getuid(), 7)
    assert settings.writable_root
    assert settings.allow_internet


def test_only_root_chooses_the_user_of_containers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What another user wrote could not be read, uploaded or deleted."""
    assert [parse_user(text) for text in ("root", "12", "12:13")] == [(0, 0), (12, 12), (12, 13)]
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    assert [may_choose_user((uid, 0)) for uid in (0, 1000, 4711)] == [False, False, True]
    with pytest.raises(StartupError, match="start the emulator as root"):
        settings_from_environment({"SMDEBUG_EMULATOR_CONTAINER_USER": "root"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SMDEBUG_EMULATOR_PORT", "65536"),
        ("SMDEBUG_EMULATOR_PORT", "-1"),
        ("SMDEBUG_EMULATOR_PORT", "1.5"),
        ("SMDEBUG_EMULATOR_PORT", "nan"),
        ("SMDEBUG_EMULATOR_RUNTIME", "podman"),
        ("SMDEBUG_EMULATOR_STOP_GRACE_SECONDS", "soon"),
        ("SMDEBUG_EMULATOR_REGION", "moon"),
        ("SMDEBUG_EMULATOR_MOTO_API", "perhaps"),
        ("SMDEBUG_EMULATOR_WRITABLE_ROOT", "perhaps"),
        ("SMDEBUG_EMULATOR_CONTAINER_USER", "nobody"),
        ("SMDEBUG_EMULATOR_CONTAINER_USER", "1000:"),
        ("SMDEBUG_EMULATOR_CONTAINER_USER", "-1"),
        ("SMDEBUG_EMULATOR_ACCOUNT_ID", "12345"),
        ("SMDEBUG_EMULATOR_RETENTION", "7"),
        ("SMDEBUG_EMULATOR_RETENTION", "-1d"),
        ("SMDEBUG_EMULATOR_RETENTION_SIZE", "much"),
        ("SMDEBUG_EMULATOR_PYTHONS", "/usr/bin:/nowhere/at/all"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(StartupError, match=f"{name} is '{value}'"):
        settings_from_environment({name: value})


def test_the_state_folder_of_a_user_without_xdg() -> None:
    assert default_state_dir({}) == Path.home() / ".local" / "state" / "smdebug-emulator"


def test_state_folder_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers mount folders below it, and an engine takes absolute paths only."""
    monkeypatch.chdir(tmp_path)
    settings = settings_from_environment({"SMDEBUG_EMULATOR_STATE_DIR": "state"})
    assert settings.state_dir == tmp_path / "state"
