import grp
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from container_runtime.docker import socket_permission
from container_runtime.docker.socket_permission import explain_refusal
from container_runtime.machine import IMAGE_VARIABLE
from tests.unprivileged import AS_NOBODY, needs_other_user

pytestmark = needs_other_user
# A group that Linux distributions have, and nobody is in.
GROUP = "daemon"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Path]:
    """The socket of an engine, as packages of Docker make it."""
    path = tmp_path / "docker.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        path.chmod(0o660)
        os.chown(path, 0, grp.getgrnam(GROUP).gr_gid)
        yield path


def run_as_nobody(engine: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AS_NOBODY, sys.executable, "-P", "-m", "emulator", *arguments],
        env={**os.environ, "DOCKER_HOST": f"unix://{engine}", "HOME": "/nonexistent"},
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )


def build_expected(engine: Path) -> tuple[str, str]:
    return (
        f"The Docker socket {engine} may not be opened by nobody: it is of root, group {GROUP}, mode 0660",
        f"Join the group: sudo usermod -aG {GROUP} nobody, then newgrp {GROUP} (other shells: log in again).",
    )


@pytest.mark.slow
def test_every_command_says_who_owns_the_socket_and_what_to_do(engine: Path, tmp_path: Path) -> None:
    what, remedy = build_expected(engine)
    sentence = f"{what}. {remedy}\n"
    status = run_as_nobody(engine, "engine", "status")
    assert (status.returncode, status.stdout) == (1, sentence), status
    doctor = run_as_nobody(engine, "doctor", "--state-dir", str(tmp_path))
    # Its table folds long paths at the width of the terminal.
    unfolded = "".join(doctor.stdout.split())
    assert "".join(f"note engine {what}; until then jobs run as local processes".split()) in unfolded
    assert "".join(f"-> {remedy}".split()) in unfolded


@pytest.mark.nightly  # the sentence is that of the test above, and of every start without the engine that it asks for
def test_docker_that_is_asked_for_is_refused(engine: Path, tmp_path: Path) -> None:
    started = run_as_nobody(engine, "engine", "start")
    assert (started.returncode, started.stderr) == (1, "{}. {}\n".format(*build_expected(engine))), started
    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, 65534, 65534)
    done = run_as_nobody(engine, "start", "--runtime", "docker", "--port", "0", "--state-dir", str(own))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "{}. {}\n".format(*build_expected(engine)))


@pytest.mark.slow
def test_the_first_line_says_why_jobs_run_as_processes(engine: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, 65534, 65534)
    state = ("--state-dir", str(own))
    done = run_as_nobody(engine, "start", "-d", "--port", "0", *state)
    try:
        assert done.returncode == 0, done.stderr
        said = "Containers run as local processes, not on Docker. {}. {}".format(*build_expected(engine))
        assert said in done.stdout.partition("\n")[0]
    finally:
        run_as_nobody(engine, "stop", *state)


@pytest.mark.parametrize(("mode", "group"), [(0o600, GROUP), (0o660, "root"), (0o640, GROUP)])
def test_a_socket_that_no_group_opens_is_given_to_one(mode: int, group: str, engine: Path) -> None:
    engine.chmod(mode)
    os.chown(engine, 0, grp.getgrnam(group).gr_gid)
    assert f"sudo chgrp docker {engine}; sudo chmod 660 {engine}" in explain_refusal(engine)


def test_a_session_older_than_its_user_s_groups(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_permission, "_list_groups", lambda _user: [engine.stat().st_gid])
    assert explain_refusal(engine).endswith(
        f" is in that group, but this session is older: newgrp {GROUP}, or log in again."
    )


def test_a_socket_that_cannot_be_seen(tmp_path: Path) -> None:
    assert "DOCKER_HOST=unix://PATH" in explain_refusal(tmp_path / "docker.sock" / "below")


def test_a_user_without_a_name_is_shown_by_number(engine: Path) -> None:
    os.chown(engine, 4_000_001, 4_000_002)
    assert "is of 4000001, group 4000002, mode 0660" in explain_refusal(engine)


def test_in_a_container_the_group_is_given_when_it_starts(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(IMAGE_VARIABLE, "1")
    number = grp.getgrnam(GROUP).gr_gid
    assert explain_refusal(engine).endswith(f"with --group-add {number}, or as root with --user 0:0.")
