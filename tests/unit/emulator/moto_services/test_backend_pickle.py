import os
import pickle
import threading
import weakref
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

from emulator.moto_services.backend_pickle import ForbiddenClassError, dump_state, dump_value, load_state, load_value


class Harmful:
    def __reduce__(self) -> Any:
        return os.system, ("true",)


@pytest.mark.parametrize(
    "value",
    [Harmful(), os.system, threading.Thread, pickle.Unpickler, getattr, eval],
    ids=["__reduce__", "os.system", "Thread", "Unpickler", "getattr", "eval"],
)
def test_what_names_no_data_of_moto_is_not_loaded(value: Any) -> None:
    with pytest.raises(ForbiddenClassError):
        load_state(pickle.dumps({"value": value}))


def test_data_of_the_standard_library_is_loaded() -> None:
    assert load_state(pickle.dumps({"value": SimpleNamespace})) == {"value": SimpleNamespace}


def test_functions_of_moto_are_not_loaded() -> None:
    from moto.core.utils import get_service_model

    with pytest.raises(ForbiddenClassError, match="get_service_model"):
        load_state(pickle.dumps({"value": get_service_model}))


def test_what_pickle_cannot_keep_comes_back() -> None:
    nested: defaultdict[str, Any] = defaultdict(lambda: defaultdict(dict))
    nested["a"]["b"]["c"] = 1
    found = load_value(dump_value([nested, threading.Lock(), threading.RLock(), threading.Condition()]))
    assert found[0] == nested
    found[0]["new"]["made"]["by"] = "the factory"
    assert found[0]["new"] == {"made": {"by": "the factory"}}
    for lock in found[1:]:
        with lock:
            pass
    assert load_value(dump_value(found[0]))["new"] == found[0]["new"], "a second time as well"


def test_weak_references_are_to_the_same_objects() -> None:
    from moto.sqs.models import Message

    message = Message("id", "body")
    weak: Any = weakref.WeakValueDictionary({"id": message})
    kept, weak_again = load_value(dump_value([message, weak]))
    assert weak_again["id"] is kept


def test_backends_are_named_and_not_copied() -> None:
    from moto.sqs.models import sqs_backends

    backend = sqs_backends["123456789012"]["eu-west-1"]
    assert load_value(dump_value([backend, backend])) == [backend, backend]


def test_a_dictionary_that_changes_meanwhile_is_pickled_all_the_same() -> None:
    changing: dict[int, Any] = {}

    class Changes:
        def __reduce__(self) -> Any:
            if len(changing) < 5:
                changing[len(changing)] = self
            return (complex, (1, 0))

    changing.update({0: Changes(), 1: Changes()})
    assert load_state(dump_state(SimpleNamespace(changing=changing))) == {"changing": dict.fromkeys(range(5), 1 + 0j)}
