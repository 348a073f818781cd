from __future__ import annotations

import pytest

from emulator.moto_services.replacement import replaced


class Service:
    @staticmethod
    def name() -> str:
        return "moto's"


def test_what_was_replaced_comes_back_after_an_error_too() -> None:
    original = vars(Service)["name"]

    def fail() -> None:
        with replaced(Service, "name", staticmethod(lambda: "ours")):
            assert Service.name() == "ours"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert vars(Service)["name"] is original


def test_several_end_in_any_order() -> None:
    original = vars(Service)["name"]
    first = replaced(Service, "name", staticmethod(lambda: "first"))
    second = replaced(Service, "name", staticmethod(lambda: "second"))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert Service.name() == "second"
    second.__exit__(None, None, None)
    assert vars(Service)["name"] is original


def test_what_is_not_there_cannot_be_replaced() -> None:
    with pytest.raises(KeyError), replaced(Service, "nothing", None):
        pass
