"""Tests of ``smdebug-emulator run``, with every connection watched.

The scripts name regions, profiles and AWS's own endpoints.
"""

import json
import os
import pty
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.forked_emulator import open_forking_process
from tests.running_emulator import RunningEmulator
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

RUN = ["run", "--runtime", "process"]

# What a script of somebody's does, with nothing in it of an emulator. The first lines note every connection.
SCRIPT = """
import json, socket, subprocess, sys, warnings
warnings.simplefilter("ignore")
hosts = set()

def note(event, args):
    if event == "socket.getaddrinfo":
        hosts.add(args[0])
    if event == "socket.connect" and not isinstance(args[1], str):
        hosts.add(args[1][0])

sys.addaudithook(note)
import boto3, requests

found = {}
try:
    boto3.client("iam").get_role(RoleName="Nobody")
except Exception as error:
    found["nobody"] = str(error).partition("operation: ")[2]
for name in ("eu-west-1", "cn-north-1"):
    session = boto3.Session(region_name=name)
    place = {"LocationConstraint": session.region_name}
    session.client("s3").create_bucket(Bucket="of-" + name, CreateBucketConfiguration=place)
prod = boto3.Session(profile_name="prod")
found["profile"] = [prod.region_name, prod.client("sts").get_caller_identity()["Account"]]
explicit = {
    "s3": "https://s3.eu-west-1.amazonaws.com",
    "sagemaker": "https://api.sagemaker.eu-west-1.amazonaws.com",
    "sts": "https://sts.cn-north-1.amazonaws.com.cn",
}
clients = {name: boto3.client(name, "eu-west-1", endpoint_url=url) for name, url in explicit.items()}
found["endpoints"] = sorted({client.meta.endpoint_url for client in clients.values()})
found["kept"] = boto3.client("s3", endpoint_url="http://127.0.0.1:9").meta.endpoint_url
found["listed"] = len(clients["s3"].list_buckets()["Buckets"])
try:
    requests.get("https://bucket.s3.amazonaws.com/key", timeout=5)
except requests.ConnectionError as error:
    found["refused"] = "smdebug-emulator run keeps this program off AWS" in str(error)
child = "import boto3; print(boto3.client('sqs', endpoint_url='https://sqs.us-east-1.amazonaws.com').meta.endpoint_url)"
found["child"] = subprocess.check_output([sys.executable, "-c", child], text=True).strip()
found["hosts"] = sorted(hosts)
found["hidden"] = sys.modules["sitecustomize"].__name__, hidden_ran
print(json.dumps(found))
"""
# The SDK takes seconds to import.
WITH_SDK = """
import boto3, json, sagemaker
names = ("eu-west-1", "cn-north-1")
buckets = [sagemaker.Session(boto3.Session(region_name=name)).default_bucket() for name in names]
print(json.dumps([sagemaker.get_execution_role(), sagemaker.Session().default_bucket(), *buckets]))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose profiles would lead to AWS."""
    aws = tmp_path / "home" / ".aws"
    aws.mkdir(parents=True)
    (aws / "config").write_text("[profile prod]\nregion = ap-south-1\nendpoint_url = https://prod.example\n")
    (aws / "credentials").write_text("[prod]\naws_access_key_id = REAL\naws_secret_access_key = REAL\n")
    return aws.parent


def run(arguments: list[str], home: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the emulator's in a fork, which becomes the user's program."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
    environment = {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), **variables}
    errors = home / "errors"
    with errors.open("w") as log:
        process = open_forking_process().fork(arguments, environment, log.fileno(), new_session=False)
    output, _ = process.communicate()
    return subprocess.CompletedProcess(arguments, process.wait(), output, errors.read_text())


def test_an_unmodified_script_reaches_the_emulator_only(home: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "sitecustomize.py").write_text("import builtins\nbuiltins.hidden_ran = True\n")
    state = tmp_path / "state"
    done = run(
        [*RUN, "--", sys.executable, str(tmp_path / "script.py")],
        home,
        PYTHONPATH=str(tmp_path / "path"),
        SMDEBUG_EMULATOR_STATE_DIR=str(state),
        AWS_ENDPOINT_URL_S3="https://s3.prod.example",
        AWS_ROLE_ARN="arn:aws:iam::999999999999:role/prod",
        http_proxy="http://127.0.0.1:9",
        TMPDIR=str(tmp_path),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    (endpoint,) = found.pop("endpoints")
    assert endpoint.startswith("http://127.0.0.1:")
    assert found == {
        "nobody": "The role with name Nobody cannot be found. Create it: aws iam create-role, or smdebug-emulator env "
        "--role Nobody, which also signs requests as it.",
        "profile": ["ap-south-1", "123456789012"],
        "kept": "http://127.0.0.1:9",
        "listed": 1,  # the other is of another partition
        "refused": True,
        "child": endpoint,
        "hosts": ["127.0.0.1"],
        "hidden": ["sitecustomize", True],
    }
    assert not state.exists(), "an emulator of the command's own has a folder of its own"
    wait_until(lambda: not list(tmp_path.glob("smdebug-emulator-run-*")), "nothing of it is left")


@pytest.mark.nightly  # by day clients/test_sagemaker_estimator.py has the SDK with the variables of env
def test_the_sdk_has_a_role_and_a_bucket_in_each_region(home: Path) -> None:
    done = run([*RUN, "--", sys.executable, "-W", "ignore", "-c", WITH_SDK], home)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == [
        "arn:aws:iam::123456789012:role/SageMakerRole",
        *(f"sagemaker-{region}-123456789012" for region in ("us-east-1", "eu-west-1", "cn-north-1")),
    ]


@pytest.fixture(scope="module")
def running(start_emulator: Any) -> RunningEmulator:
    emulator: RunningEmulator = start_emulator("process")
    return emulator


@pytest.mark.parametrize(("script", "expected"), [("exit 7", 7), ("kill -TERM $$", -signal.SIGTERM)])
def test_it_ends_as_the_command_ends(script: str, expected: int, running: RunningEmulator, home: Path) -> None:
    done = run([*RUN, "--state-dir", str(running.state_dir), "sh", "-c", script], home)
    assert (done.returncode, done.stdout, done.stderr) == (expected, "", "")


def test_its_terminal_and_signals_are_the_command_s(running: RunningEmulator, home: Path) -> None:
    master, slave = pty.openpty()
    # With the default action no signal is lost between the line and the pause.
    source = "import signal as s, sys; s.signal(2, s.SIG_DFL); print(sys.stdin.isatty(), flush=True); s.pause()"
    options = ["--state-dir", str(running.state_dir), "--", sys.executable, "-c", source]
    command = [sys.executable, "-m", "emulator", *RUN, *options]
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    with subprocess.Popen(
        command, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    ) as process:
        os.close(slave)
        with os.fdopen(master, "rb", buffering=0) as terminal:
            said = terminal.readline()
            process.send_signal(signal.SIGINT)
            ended = process.wait(60)
        assert (said, ended) == (b"True\r\n", -signal.SIGINT)
    assert running.process.poll() is None


def test_commands_of_the_emulator_find_the_command_s_own(home: Path, tmp_path: Path) -> None:
    source = textwrap.dedent(
        """
        import json, os, subprocess, sys
        asked = subprocess.run([sys.executable, "-m", "emulator", "status", "--json"], capture_output=True, check=True)
        assert json.loads(asked.stdout)["emulator"]["endpoint"] == os.environ["AWS_ENDPOINT_URL"]
        """
    )
    state = tmp_path / "kept"
    done = run([*RUN, "--state-dir", str(state), "--", sys.executable, "-c", source], home)
    assert (done.returncode, done.stderr) == (0, "")
    wait_until(lambda: not (state / "emulator.json").exists(), "it ends with the command")
    assert (state / "jobs.sqlite").exists()


@pytest.mark.parametrize("command", ["env", "run"])
def test_commands_of_the_emulator_find_the_one_that_was_named(
    command: str, running: RunningEmulator, home: Path
) -> None:
    """Not the emulator elsewhere that the environment names, which --state-dir overrules."""
    status = f"{sys.executable} -m emulator status --json"
    options = ["--state-dir", os.path.relpath(running.state_dir)]
    script = ["--", "sh", "-c", status] if command == "run" else []
    done = run([command, *options, *script], home, SMDEBUG_EMULATOR_REMOTE="https://nobody.invalid")
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout
    if command == "env":
        shell = ["sh", "-c", f"{done.stdout}\n{status}"]
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "SMDEBUG_EMULATOR_REMOTE": "https://nobody.invalid",
        }
        said = subprocess.run(shell, check=True, capture_output=True, text=True, env=environment, cwd=home).stdout
    assert json.loads(said)["emulator"]["endpoint"] == running.endpoint_url


def test_an_emulator_that_cannot_start_is_one_message(home: Path, tmp_path: Path) -> None:
    command = ["run", "--runtime", "docker", "true"]
    nothing = {"DOCKER_HOST": f"unix://{tmp_path}/nothing.sock", "SMDEBUG_EMULATOR_STATE_DIR": str(tmp_path / "s")}
    done = run(command, home, TMPDIR=str(tmp_path), **nothing)
    assert done.returncode == 1
    assert "--runtime process" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.glob("smdebug-emulator-run-*"))
