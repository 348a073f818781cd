"""Every operation against botocore's model of it: what it accepts, and what it refuses with which words."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from emulator.exceptions import AwsError
from emulator.gateway.protocol import find_operation, load_operation
from emulator.operations import find_operations
from tests.unit.emulator.gateway.generated_requests import (
    build_request,
    find_edges,
    find_violations,
    replace_member,
)

if TYPE_CHECKING:
    from botocore.model import StructureShape

OPERATIONS = sorted(find_operations())
_SEEDS = range(3)


def load_input(name: str) -> StructureShape:
    model = find_operation(name)
    assert model is not None
    assert model.input_shape is not None
    return model.input_shape


def decode(name: str, request: Any) -> dict[str, Any]:
    return load_operation(name).decode(json.dumps(request).encode())


def refusal(name: str, request: Any) -> tuple[str, str]:
    """Code and message of the error that a request gets; empty where it gets none."""
    try:
        decode(name, request)
    except AwsError as error:
        return error.code, error.message
    return "", ""


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_model_allows_is_accepted(name: str) -> None:
    shape = load_input(name)
    for seed in _SEEDS:
        for full in (False, True):
            request = build_request(shape, Random(seed), full=full)
            assert refusal(name, request) == ("", ""), request
            assert decode(name, request).keys() == request.keys()
    full_request = build_request(shape, Random(0), full=True)
    refused = [
        (path, value, found)
        for path, value in find_edges(shape, full_request)
        if (found := refusal(name, replace_member(full_request, path, value))) != ("", "")
    ]
    assert refused == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_model_forbids_is_refused_in_awss_words(name: str) -> None:
    shape = load_input(name)
    request = build_request(shape, Random(0), full=True)
    wrong = []
    for violation in find_violations(shape, request):
        code, message = refusal(name, violation.apply(request))
        if code != violation.code or violation.words not in message:
            wrong.append((violation, code, message[-300:]))
    assert wrong == []
