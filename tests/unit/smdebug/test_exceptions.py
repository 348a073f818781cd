"""Tests of every exception: base classes, attributes, and advice in messages."""

import pickle

import pytest

from smdebug import exceptions
from smdebug.mode_keys import ModeKeys

TRAIN = ModeKeys.TRAIN
# Made with these arguments, an error's text holds these words.
CASES: dict[str, tuple[tuple[object, ...], list[str]]] = {
    "SMDebugError": (("why",), ["why"]),
    "SMDebugTypeError": (("why",), ["why"]),
    "SMDebugRuntimeError": (("why",), ["why"]),
    "SMDebugNotImplementedError": (("why",), ["why"]),
    "SMDebugValueError": (("why",), ["why"]),
    "SMDebugCustomerError": (("why",), ["why"]),
    "InvalidCollectionConfiguration": (("mine",), ["mine", "include_regex"]),
    "StepNotYetAvailable": ((7, TRAIN), ["7", "TRAIN", "wait_for_steps"]),
    "StepUnavailable": ((7, TRAIN), ["7", "TRAIN", "trial.steps()"]),
    "TensorUnavailableForStep": (("t", 7, TRAIN), ["t", "7", "TRAIN", "steps()"]),
    "ShapeUnavailableForStep": (("t", 7, TRAIN), ["t", "7", "TRAIN", "save_shape"]),
    "TensorUnavailable": (("t",), ["t", "tensor_names"]),
    "InvalidWorker": (("worker_9",), ["worker_9", "workers(step)"]),
    "NoMoreData": ((7, TRAIN, 5), ["7", "TRAIN", "5"]),
    "NoMoreProfilerData": ((1.5,), ["1.5"]),
    "MissingCollectionFiles": ((), ["collection files", "hook"]),
    "IndexReaderException": (("why",), ["why"]),
    "RuleEvaluationConditionMet": (("MyRule", 7), ["MyRule", "7"]),
    "InsufficientInformationForRuleInvocation": (("MyRule", "why"), ["MyRule", "why"]),
}
BUILT_IN = {"Type": TypeError, "Runtime": RuntimeError, "NotImplemented": NotImplementedError, "Value": ValueError}


@pytest.mark.parametrize("name", CASES)
def test_text_and_bases(name: str) -> None:
    arguments, words = CASES[name]
    error = getattr(exceptions, name)(*arguments)
    assert isinstance(error, exceptions.SMDebugError)
    for word in words:
        assert word in str(error)
    built_in = BUILT_IN.get(name.removeprefix("SMDebug").removesuffix("Error"))
    assert built_in is None or isinstance(error, built_in)
    # Rules may run in other processes.
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_star_import_brings_them_all_and_the_modes() -> None:
    namespace: dict[str, object] = {}
    exec("from smdebug.exceptions import *", namespace)
    assert set(CASES) <= set(namespace)
    assert namespace["modes"] is ModeKeys


def test_every_exception_is_here() -> None:
    defined = {
        name
        for name, value in vars(exceptions).items()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == "smdebug.exceptions"
    }
    assert defined == set(CASES)


def test_reductions_are_hinted_at_where_there_are_some() -> None:
    assert "reduction_value" in str(exceptions.TensorUnavailableForStep("t", 1, has_reductions=True))
    assert "reduction_value" not in str(exceptions.TensorUnavailableForStep("t", 1))
