"""The table of what is replaced, and its check against the installed moto."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import moto
import pytest
from moto.s3.models import S3Backend

from emulator.exceptions import StartupError
from emulator.moto_services import replacements
from emulator.moto_services.cloudwatch.alarms import capture_alarms
from emulator.moto_services.cloudwatch.composite_alarms import capture_composite_alarms
from emulator.moto_services.eventbridge.rules import capture_dispatch
from emulator.moto_services.eventbridge.scheduler import capture_scheduler
from emulator.moto_services.eventbridge.schedules import capture_schedules
from emulator.moto_services.functions.backend import capture_invocations
from emulator.moto_services.replacements import OVERRIDDEN, REPLACED, Replacement, check_moto, list_replaced, replaced
from emulator.moto_services.s3.journalled_backend import JournalledBackend
from emulator.moto_services.sns import bound_http_endpoints, capture_published
from emulator.moto_services.store import MotoStore


class Service:
    @staticmethod
    def name(first: str, second: str) -> str:
        return f"moto's {first} {second}"


@pytest.fixture
def _listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replacements, "REPLACED", (Replacement(f"{__name__}:Service", "name", "", "a test"),))


@pytest.mark.usefixtures("_listed")
def test_what_was_replaced_comes_back_after_an_error_too() -> None:
    original = vars(Service)["name"]

    def fail() -> None:
        with replaced(Service, name=staticmethod(lambda *_: "ours")):
            assert Service.name("", "") == "ours"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert vars(Service)["name"] is original


@pytest.mark.usefixtures("_listed")
def test_several_end_in_any_order() -> None:
    original = vars(Service)["name"]
    first = replaced(Service, name=staticmethod(lambda *_: "first"))
    second = replaced(Service, name=staticmethod(lambda *_: "second"))
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert Service.name("", "") == "second"
    second.__exit__(None, None, None)
    assert vars(Service)["name"] is original


def test_an_attribute_that_the_table_does_not_list_cannot_be_replaced() -> None:
    with pytest.raises(LookupError, match="not in the table"), replaced(Service, name=None):
        pass


def _read_attributes() -> Iterator[tuple[str, str, Any]]:
    """Yield every attribute of the modules of moto that are imported, and of their classes and dictionaries."""
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith("moto."):
            for name, value in list(vars(module).items()):
                yield module_name, name, value
                if getattr(value, "__module__", None) == module_name and hasattr(value, "__dict__"):
                    for attribute, member in list(vars(value).items()):
                        yield f"{module_name}:{name}", attribute, member


def test_the_table_lists_exactly_what_is_replaced(tmp_path: Path) -> None:
    for row in REPLACED:
        importlib.import_module(row.owner.partition(":")[0])
    before = {(owner, name): value for owner, name, value in _read_attributes()}
    store = MotoStore(tmp_path)
    with (
        capture_dispatch(lambda *_: None),
        capture_schedules(lambda: None),
        capture_scheduler(lambda: None),
        capture_invocations(lambda *_: None),
        capture_alarms(lambda: None, lambda *_: None),
        capture_composite_alarms(),
        capture_published(lambda _: None),
        bound_http_endpoints(allow_internet=False),
    ):
        for service in ("awslambda", "cloudwatch", "iam", "kms", "logs", "sagemaker", "sagemakermetrics", "sqs", "sts"):
            models = importlib.import_module(f"moto.{service}.models")
            backends = f"{service.removeprefix('aws')}_backends"
            assert vars(models)[backends]["123456789012"] is not None
        assert set(list_replaced()) == set(REPLACED)
        changed = {(owner, name) for owner, name, value in _read_attributes() if before.get((owner, name)) is not value}
    assert {(row.owner, row.name) for row in REPLACED} == changed
    store.close()
    assert not list_replaced()
    left = {(owner, name) for owner, name, value in _read_attributes() if before.get((owner, name)) is not value}
    assert not left


def test_the_table_lists_exactly_what_is_overridden() -> None:
    own = {
        name
        for name, method in vars(JournalledBackend).items()
        if name in vars(S3Backend) and not name.startswith("__") and not hasattr(method, "__wrapped__")
    }
    assert {row.name for row in OVERRIDDEN} == own


def test_the_installed_moto_fits_the_table() -> None:
    assert [problem for row in (*REPLACED, *OVERRIDDEN) if (problem := row.find_problem())] == []


def test_a_tested_version_imports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda name: pytest.fail(f"imported {name}"))
    check_moto(replacements.TESTED_VERSIONS[0])


def test_another_version_that_fits_is_taken(caplog: pytest.LogCaptureFixture) -> None:
    check_moto("99.0")
    assert "99.0" in caplog.text


def test_a_version_that_does_not_fit_ends_in_one_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = (
        Replacement("moto.nowhere:Backend", "put", "", ""),
        Replacement("moto.s3.models:Backend", "put", "", ""),
        Replacement("moto.s3.models:S3Backend", "fly", "", ""),
        Replacement("moto.s3.models:S3Backend", "get_bucket", "name", ""),
    )
    monkeypatch.setattr(replacements, "REPLACED", rows)
    monkeypatch.setattr(moto, "__version__", "99.0")
    with pytest.raises(StartupError) as caught:
        MotoStore(tmp_path)
    message = str(caught.value)
    assert message.startswith("moto 99.0 does not fit this emulator: ")
    for part in (
        "moto.nowhere.Backend.put (No module named 'moto.nowhere')",
        "moto.s3.models.Backend.put is missing",
        "moto.s3.models.S3Backend.fly is missing",
        "moto.s3.models.S3Backend.get_bucket takes (bucket_name)",
        *replacements.TESTED_VERSIONS,
    ):
        assert part in message
    assert list(tmp_path.iterdir()) == []
