"""Fuzz tests of every SageMaker operation: no request is answered with a 5xx.

moto's operations are included.
"""

import json
import os
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from emulator.operations import find_operations
from emulator.service_model import load_service_model
from tests.integration.emulator.gateway.job_gateway import JobGateway
from tests.integration.emulator.gateway.test_conformance import find_moto_operations
from tests.unit.emulator.gateway.generated_requests import MISSING, Path, build_request, find_violations, replace_member

REQUESTS = int(os.environ.get("SMDEBUG_FUZZ_REQUESTS", "100"))
BY_DAY_AND_BY_NIGHT = [REQUESTS, pytest.param(10 * REQUESTS, marks=pytest.mark.nightly)]
ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, 1e308, "", "x", "x" * 3000, "\u0000", "../..", "größe", [], [None], {}, {"A": {}},
    "arn:aws:sagemaker:us-east-1:123456789012:model/x", "s3://", MISSING,
)  # fmt: skip
_MESSAGE = {"message", "Message"}


class Fuzz:
    """Makes requests; strings that answers held come back in later requests, so that some name what there is."""

    def __init__(self) -> None:
        self._seen: dict[str, list[str]] = {}

    def build(self, name: str, random: Random) -> bytes:
        shape = load_service_model().operation_model(name).input_shape
        request: Any = build_request(shape, random, full=random.random() < 0.3) if shape else {}
        if random.random() < 0.8:
            request = self._reuse(request, random)
        match random.randrange(8):
            case 0:
                full = build_request(shape, random, full=True) if shape else {}
                if violations := list(find_violations(shape, full)) if shape else []:
                    request = random.choice(violations).apply(full)
            case 1:
                for _ in range(random.randrange(1, 4)):
                    paths = list(find_paths(request))
                    if paths:
                        request = replace_member(request, random.choice(paths), random.choice(ODD_VALUES))
            case 2 if random.random() < 0.3:
                body = json.dumps(request).encode()
                return random.choice([body[: len(body) // 2], body + b"}", b"", b"null", b"[]", b"\xff", b"{}"])
        return json.dumps(request).encode()

    def learn(self, answer: Any) -> None:
        match answer:
            case dict():
                for key, value in answer.items():
                    if isinstance(value, str):
                        self._seen.setdefault(key, []).append(value)
                    self.learn(value)
            case list():
                for each in answer:
                    self.learn(each)

    def list_seen(self, key: str) -> list[str]:
        """List the values that a member had in answers."""
        return self._seen.get(key, [])

    def _reuse(self, request: dict[str, Any], random: Random) -> dict[str, Any]:
        arns = [arn for key, values in self._seen.items() if key.endswith("Arn") for arn in values]
        for name, value in request.items():
            known = arns if name == "ResourceArn" else self._seen.get(name)
            if isinstance(value, str) and known:
                request[name] = random.choice(known)
        return request


def find_paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    entries: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from find_paths(entry, (*path, key))


def is_answer(status: int, data: bytes) -> bool:
    """Tell whether this is an answer of SageMaker's: a JSON object or nothing, or an error with code and message."""
    if status == 200 and not data:
        return True
    try:
        content = json.loads(data)
    except ValueError:
        return False
    known = isinstance(content, dict)
    return known and (status == 200 or (status < 500 and "__type" in content and bool(content.keys() & _MESSAGE)))


@pytest.mark.slow
@pytest.mark.parametrize("requests", BY_DAY_AND_BY_NIGHT)
def test_no_request_is_answered_with_a_5xx(job_gateway: JobGateway, requests: int) -> None:
    names, fuzz, wrong, statuses = [*find_operations(), *find_moto_operations()], Fuzz(), [], []
    Random(0).shuffle(names)  # there are more of them than requests by day
    for seed in range(requests):
        random = Random(seed)
        name = names[seed % len(names)]
        body = fuzz.build(name, random)
        answer = job_gateway.send(name, body)
        statuses.append(answer.status_code)
        if not is_answer(answer.status_code, answer.data):
            wrong.append((seed, name, body[:300], answer.status_code, answer.data[:300]))
        elif answer.status_code == 200:
            fuzz.learn([json.loads(body or b"{}"), json.loads(answer.data or b"{}")])
    assert wrong == []
    assert statuses.count(200) > requests / 8, "nearly all were refused, which says little about what runs"
