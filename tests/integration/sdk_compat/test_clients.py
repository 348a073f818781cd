"""Tests of unmodified client code, led by environment variables alone.

Each client is a process of its own, without a network.
"""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from emulator.gateway.addresses import LOOPBACK
from emulator.gateway.listener import Listener
from emulator.moto_services.wsgi import MotoApplication
from sdk_compat import sagemaker_v3
from sdk_compat.aws_variables import EmulatorAnswerError
from sdk_compat.boto3_client import EmulatorSession
from sdk_compat.sagemaker_v2 import local_session

pytestmark = pytest.mark.slow

# A connection to anything but this machine fails the script.
NO_NETWORK = """
import socket
_connect = socket.socket.connect
def _checked(self, address):
    if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
        raise SystemExit(f"network: {address}")
    return _connect(self, address)
socket.socket.connect = _checked
_resolve = socket.getaddrinfo
def _resolve_checked(host, *rest, **options):
    if host not in ("127.0.0.1", "localhost", "::1", None):
        raise SystemExit(f"network: {host}")
    return _resolve(host, *rest, **options)
socket.getaddrinfo = _resolve_checked
"""


@pytest.fixture(scope="module")
def moto_url(fresh_moto: None) -> Iterator[str]:
    """moto behind a listener on a free port: enough of AWS to see where clients send their requests."""
    listener = Listener(LOOPBACK, 0)
    listener.serve(MotoApplication())
    yield f"http://{LOOPBACK}:{listener.port}"
    listener.close()


def run_script(tmp_path: Path, moto_url: str, source: str, *options: str) -> Any:
    """Run ``source`` under ``python -m sdk_compat run`` and return the JSON of its last line."""
    script = tmp_path / "script.py"
    script.write_text(NO_NETWORK + textwrap.dedent(source))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        [sys.executable, "-m", "sdk_compat", "run", "--endpoint", moto_url, *options, str(script)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_boto3_and_explicit_endpoints(tmp_path: Path, moto_url: str) -> None:
    """Those of AWS are replaced, and others are kept."""
    answers, kept = run_script(
        tmp_path,
        moto_url,
        """
        import json
        import boto3
        clients = [boto3.client("sts")]
        for region, host in (("us-east-1", "sts.us-east-1"), ("eu-west-1", "sts.eu-west-1"), ("us-east-1", "sts")):
            clients.append(boto3.client("sts", region_name=region, endpoint_url=f"https://{host}.amazonaws.com"))
        kept = boto3.client("sts", endpoint_url="http://127.0.0.1:9").meta.endpoint_url
        print(json.dumps([[client.get_caller_identity()["Account"] for client in clients], kept]))
        """,
    )
    assert (answers, kept) == (["123456789012"] * 4, "http://127.0.0.1:9")


FIT = """
    import json
    import sagemaker
    from sagemaker.debugger import CollectionConfig, DebuggerHookConfig, Rule, rule_configs
    from sagemaker.pytorch import PyTorch

    session = sagemaker.Session()
    identity = [session.account_id(), session.default_bucket(), sagemaker.get_execution_role()]
    open("train.py", "w").write("print('training')")
    estimator = PyTorch(
        entry_point="train.py",
        role="arn:aws:iam::123456789012:role/trainer",
        framework_version="2.8.0",
        py_version="py312",
        instance_count=1,
        instance_type="ml.m5.large",
        hyperparameters={"epochs": 1},
        rules=[Rule.sagemaker(rule_configs.vanishing_gradient())],
        debugger_hook_config=DebuggerHookConfig(
            collection_configs=[CollectionConfig(name="gradients", parameters={"save_interval": "5"})]
        ),
    )
    estimator.fit(wait=WAIT, logs=LOGS)
    description = estimator.latest_training_job.describe()
    print()
    print(json.dumps([description["TrainingJobStatus"], description["DebugHookConfig"]["S3OutputPath"], identity]))
"""


@pytest.mark.nightly  # by day clients/test_sagemaker_estimator.py fits estimators
@pytest.mark.parametrize("wait", [False, True])
def test_estimator_fit_sends_everything_to_the_endpoint(tmp_path: Path, moto_url: str, wait: bool) -> None:
    source = FIT.replace("WAIT", str(wait)).replace("LOGS", "'All'")
    status, hook_path, identity = run_script(tmp_path, moto_url, source, "--role", "trainer")
    assert identity == [
        "123456789012",
        "sagemaker-us-east-1-123456789012",
        "arn:aws:iam::123456789012:role/trainer",
    ]
    assert status in ("Completed", "InProgress")
    assert hook_path.startswith("s3://sagemaker-us-east-1-123456789012/")
    s3 = EmulatorSession(moto_url).client("s3")
    keys = [entry["Key"] for entry in s3.list_objects_v2(Bucket="sagemaker-us-east-1-123456789012")["Contents"]]
    assert any(key.endswith("sourcedir.tar.gz") for key in keys)


@pytest.fixture
def without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


class Session:
    """What each version of the SDK has for its clients, without the seconds of its import."""

    def __init__(self, *, boto_session: Any, default_bucket: str | None, sagemaker_config: dict[str, Any]) -> None:
        self.boto_session = boto_session
        self.default_bucket = default_bucket
        self.sagemaker_config = sagemaker_config


@pytest.mark.parametrize("module", ["sagemaker.session", "sagemaker.core.helper.session_helper"])
def test_clients_of_a_local_session_need_no_environment(
    module: str, moto_url: str, without_variables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = module.split(".")
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setattr(sys.modules[module], "Session", Session, raising=False)
    opens = sagemaker_v3.local_session if ".core." in module else local_session
    session = opens(moto_url, "eu-west-1", default_bucket="mine")
    assert session.default_bucket == "mine"
    clients = [session.boto_session.client(name) for name in ("s3", "sagemaker", "sts")]
    assert {client.meta.endpoint_url for client in clients} == {moto_url}
    assert {client.meta.region_name for client in clients} == {"eu-west-1"}
    assert clients[-1].get_caller_identity()["Account"] == "123456789012"
    assert session.sagemaker_config["SageMaker"]["PythonSDK"]["Modules"]["TelemetryOptOut"] is True


@pytest.mark.nightly  # the SDK takes seconds to import: by day the test above has the session's clients
def test_local_session_needs_no_environment(
    moto_url: str, without_variables: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAGEMAKER_SUPPRESS_V2_WARNING", "1")
    session = local_session(moto_url, "eu-west-1")
    assert session.account_id() == "123456789012"
    assert session.default_bucket() == "sagemaker-eu-west-1-123456789012"
    assert session.get_caller_identity_arn().startswith("arn:aws:sts::123456789012:")
    assert session.boto_session.client("s3").meta.endpoint_url == moto_url
    assert session.sagemaker_client.meta.endpoint_url == moto_url


def test_local_session_says_what_is_in_its_way() -> None:
    other = Listener(LOOPBACK, 0)
    url = f"http://{LOOPBACK}:{other.port}"
    other.serve(lambda _environ, start: (start("200 OK", []), [b"<html>another service</html>"])[1])
    try:
        with pytest.raises(
            EmulatorAnswerError, match=f"What answers at {url} is not an emulator: start one on another port"
        ):
            local_session(url)
    finally:
        other.close()
    with pytest.raises(EmulatorAnswerError, match=f"No emulator answers at {url} .*: start one with"):
        local_session(url)


def test_local_session_names_the_version_that_it_needs(moto_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sagemaker.session", None)  # as where version 3 is installed, or none
    with pytest.raises(ImportError, match=r"pip install 'sagemaker<3'"):
        local_session(moto_url)


def test_aws_cli(tmp_path: Path, moto_url: str) -> None:
    aws = Path(sys.executable).with_name("aws")
    source_root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, "-m", "sdk_compat", "run", "--endpoint", moto_url, str(aws), "sts", "get-caller-identity"],
        env={
            "PATH": f"{aws.parent}:/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTHONPATH": source_root,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["Account"] == "123456789012"
