"""Addresses of AWS's that clients name of their own accord."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from awscli.customizations.overridesslcommonname import SSL_COMMON_NAMES  # type: ignore[import-untyped]
from botocore.endpoint_provider import EndpointProvider

from sdk_compat.aws_variables import EXPLICIT_ENDPOINTS
from sdk_compat.environment import prepare_command_environment, prepare_environment

URL = "http://127.0.0.1:4580"
# What the rules of these services need besides.
MORE = {
    "acm": {"ServiceType": "x"},
    "cloudfront-keyvaluestore": {"KvsARN": "arn:aws:cloudfront::123456789012:key-value-store/a"},
    "neptune-graph": {"ApiType": "ControlPlane"},
}
# A program of the CLI's; it says where it would connect to, and connects to nothing.
COMMAND = """
import sys
def refuse(event, args):
    if event == "socket.getaddrinfo" or (event == "socket.connect" and not isinstance(args[1], str)):
        print(args[0] if event == "socket.getaddrinfo" else args[1][0], flush=True)
        if (args[0] if event == "socket.getaddrinfo" else args[1][0]) != "127.0.0.1":
            raise SystemExit("it would leave")
sys.addaudithook(refuse)
from awscli.clidriver import create_clidriver
sys.exit(create_clidriver().main(sys.argv[1:]))
"""


class Rules:
    """The endpoint rules as botocore reads them with the variables of ``env``."""

    def __init__(self, variables: dict[str, str]) -> None:
        session = botocore.session.Session(session_vars={"data_path": (None, None, variables["AWS_DATA_PATH"], None)})
        self._loader: Any = session.get_component("data_loader")
        self._partitions = self._loader.load_data("partitions")
        self.services: list[str] = session.get_available_services()

    def resolve(self, service: str, endpoint: str, region: str = "us-east-1") -> str:
        rules = self._loader.load_service_model(service, "endpoint-rule-set-1")
        given = {
            name: each.get("default", False)
            for name, each in rules["parameters"].items()
            if each["type"].lower() == "boolean"
        }
        given |= {"Region": region, "Endpoint": endpoint, **MORE.get(service, {})}
        wanted = {name: value for name, value in given.items() if name in rules["parameters"]}
        return str(EndpointProvider(rules, self._partitions).resolve_endpoint(**wanted).url)


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Rules:
    return Rules(prepare_environment(URL, {}, folder=tmp_path_factory.mktemp("clients")))


def test_what_the_cli_names_becomes_the_emulator(rules: Rules) -> None:
    assert set(SSL_COMMON_NAMES) <= set(EXPLICIT_ENDPOINTS)
    found = {
        (service, region): rules.resolve(service, f"https://{host}", region)
        for service, hosts in SSL_COMMON_NAMES.items()
        for region, host in hosts.items()
    }
    assert {each for each, url in found.items() if url != URL} == set()


@pytest.mark.slow
def test_every_service_sends_its_requests_to_the_emulator(rules: Rules) -> None:
    assert len(rules.services) > 400
    left = {service: url for service in rules.services if not (url := rules.resolve(service, URL)).startswith(URL)}
    # Its host's name begins with the account, which is not a name that anybody resolves.
    assert left.keys() <= {"cloudfront-keyvaluestore"}, left


@pytest.mark.parametrize("service", sorted(EXPLICIT_ENDPOINTS))
def test_an_endpoint_that_is_not_awss_is_kept(rules: Rules, service: str) -> None:
    for kept in ("http://127.0.0.1:9", "https://sqs.example.com", "https://amazonaws.com.example", "http://a"):
        assert rules.resolve(service, kept) == kept
    for of_aws in ("https://sts.us-gov-west-1.amazonaws.com", "https://sqs.cn-north-1.amazonaws.com.cn"):
        assert rules.resolve(service, of_aws) == URL


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "prepare"),
    [
        pytest.param("sqs list-queues", prepare_environment, id="env"),
        # By day integration/sdk_compat/test_clients.py has the CLI under run.
        pytest.param("rds describe-db-instances", prepare_command_environment, id="run", marks=pytest.mark.nightly),
    ],
)
def test_the_cli_stays(prepare: Any, service: str, tmp_path: Path) -> None:
    endpoint = "http://127.0.0.1:9"
    mine = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *service.split(), "--region", "us-east-1", "--cli-connect-timeout", "5"],
        env={**mine, **prepare(endpoint, mine, region="us-east-1"), "AWS_MAX_ATTEMPTS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert set(done.stdout.split()) == {"127.0.0.1"}, done.stdout + done.stderr
    assert f'Could not connect to the endpoint URL: "{endpoint}/' in done.stderr
