"""Tests of the emulator's secret, and of credentials sealed with it."""

import stat
import time
from pathlib import Path

import pytest

from emulator.exceptions import SignatureError, StartupError
from emulator.gateway.guard import Guard
from emulator.security.keys import Keys, load_keys
from emulator.security.signatures import Signature

ROLE, ACCOUNT = "arn:aws:iam::123456789012:role/path/Training", "123456789012"


def test_keys_are_made_once_and_are_their_owners(tmp_path: Path) -> None:
    keys = load_keys(tmp_path)
    assert load_keys(tmp_path) == keys
    assert keys.secret not in repr(keys)
    path = tmp_path / "keys.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for damaged in ("", "{}", '{"secret": "", "token": ""}', "[1]"):
        path.write_text(damaged)
        with pytest.raises(StartupError, match=r"keys\.json cannot be read"):
            load_keys(tmp_path)


def test_a_session_names_its_user_and_cannot_be_changed() -> None:
    keys, other = Keys("s" * 40, "t" * 40), Keys("S" * 40, "t" * 40)
    given = keys.issue(ROLE, "job", ACCOUNT, 60)
    token = given["AWS_SESSION_TOKEN"]
    session = keys.read_session(token)
    assert session is not None
    assert session.arn == f"arn:aws:sts::{ACCOUNT}:assumed-role/Training/job"
    assert session.access_key == given["AWS_ACCESS_KEY_ID"]
    assert 50 < session.expires - time.time() <= 61
    assert keys.find_secret(token) == given["AWS_SECRET_ACCESS_KEY"]
    assert other.read_session(token) is None
    assert keys.issue(ROLE, "job", ACCOUNT, 60)["AWS_SECRET_ACCESS_KEY"] != given["AWS_SECRET_ACCESS_KEY"]
    for changed in (token[:-1], f"{token}x", token.replace("smde.", "smde.A"), "smde.", "", "smde.é.é"):
        assert keys.read_session(changed) is None


@pytest.mark.parametrize(("seconds", "other_key", "kind"), [(-1, False, "expired_token"), (60, True, "bad_token")])
def test_a_session_that_is_over_or_anothers_is_refused(seconds: float, other_key: bool, kind: str) -> None:
    keys = Keys("s" * 40, "t" * 40)
    given = keys.issue(ROLE, "job", ACCOUNT, seconds)
    key = "ASIAOFANOTHERONE" if other_key else given["AWS_ACCESS_KEY_ID"]
    signature = Signature(key, "20260101", "us-east-1", "s3", (), "", "", None, given["AWS_SESSION_TOKEN"])
    with pytest.raises(SignatureError) as refused:
        Guard(keys, ACCOUNT, {})._identify(signature)
    assert refused.value.kind == kind
