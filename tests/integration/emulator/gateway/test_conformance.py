"""Tests of every operation against botocore's model: acceptance and errors.

Errors have to have AWS's words.
"""

import json
from collections.abc import Iterable
from random import Random
from typing import Any

import pytest
from botocore import xform_name
from botocore.model import StructureShape

from emulator.exceptions import AwsError
from emulator.gateway.protocol import find_operation, load_operation
from emulator.moto_services.wsgi import has_sagemaker_operation
from emulator.operations import find_operations
from emulator.service_model import load_service_model
from tests.unit.emulator.gateway.generated_requests import (
    Violation,
    build_request,
    find_edges,
    find_violations,
    replace_member,
)

OPERATIONS = sorted(find_operations())
_SAMPLE = 8
_SEEDS = range(3)
# By day, one in so many of an operation's violations: they break the same few checks at other places.
_EVERY = 15


def find_moto_operations() -> list[str]:
    """Find the operations that moto answers, behind the same checks."""
    names = load_service_model().operation_names
    return [name for name in names if name not in OPERATIONS and has_sagemaker_operation(xform_name(name))]


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


def build_full(name: str, shape: StructureShape) -> Any:
    """Build a request with all members; of a tuning job, whose two members hold one shape, one has all of them."""
    request = build_request(shape, Random(0), full=True)
    if name == "CreateHyperParameterTuningJob":
        definitions: Any = shape.members["TrainingJobDefinitions"]
        assert definitions.member.name == shape.members["TrainingJobDefinition"].name
        request["TrainingJobDefinitions"] = [build_request(definitions.member, Random(0), full=False)]
    return request


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(1), pytest.param(_SEEDS, marks=pytest.mark.nightly)], ids=["one", "all"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_model_allows_is_accepted(name: str, seeds: range) -> None:
    shape = load_input(name)
    for seed in seeds:
        for full in (False, True):
            request = build_request(shape, Random(seed), full=full)
            assert refusal(name, request) == ("", ""), request
            assert decode(name, request).keys() == request.keys()
    full_request = build_full(name, shape)
    refused = [
        (path, value, found)
        for path, value in find_edges(shape, full_request)
        if (found := refusal(name, replace_member(full_request, path, value))) != ("", "")
    ]
    assert refused == []


@pytest.mark.slow
@pytest.mark.parametrize("every", [_EVERY, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_model_forbids_is_refused_in_awss_words(name: str, every: int) -> None:
    shape = load_input(name)
    request = build_full(name, shape)
    violations = list(find_violations(shape, request))
    if every == 1:
        chosen = violations
    else:  # all maps that have too many or too few entries, for there are few of them
        chosen = Random(name).sample(violations, -(-len(violations) // every))
        chosen += [each for each in violations if isinstance(each.value, dict) and each not in chosen]
    assert find_unrefused(name, request, chosen) == []


@pytest.mark.slow
@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_model_holds_for_what_moto_answers_too(every: int) -> None:
    """A sample of each operation: the checks are the same ones, and what there is to find are shapes of other kinds."""
    for name in find_moto_operations()[::every]:
        shape, random = load_input(name), Random(name)
        request = build_request(shape, random, full=True)
        assert refusal(name, request) == ("", ""), name
        violations = list(find_violations(shape, request))
        sample = random.sample(violations, min(_SAMPLE, len(violations)))
        assert find_unrefused(name, request, sample) == [], name


def find_unrefused(
    name: str, request: dict[str, Any], violations: Iterable[Violation]
) -> list[tuple[Violation, str, str]]:
    """Find the violations that are not refused with their code and words, with what came instead."""
    found = []
    for violation in violations:
        code, message = refusal(name, violation.apply(request))
        if code != violation.code or violation.words not in message:
            found.append((violation, code, message[-300:]))
    return found
