from typing import Any, cast

import pytest

from emulator.api.account_services import RequestAccounts
from emulator.api.administration.authority import build_authority_pages
from emulator.api.administration.faults import build_fault_pages
from emulator.api.administration.prune import build_prune_pages
from emulator.api.administration.state import build_state_pages
from emulator.api.application import build_pages
from emulator.api.changes import Streams, build_changes_pages
from emulator.api.description.openapi import build_document, build_openapi_pages, render_docs
from emulator.api.description.routes import PAGES
from emulator.api.jobs.job_exports import build_job_exports_pages
from emulator.api.jobs.job_tags import build_tags_pages
from emulator.api.jobs.pipeline_executions import build_pipeline_executions_pages
from emulator.api.jobs.processing_jobs import build_processing_jobs_pages
from emulator.api.jobs.short_names import build_names_pages
from emulator.api.jobs.spot import build_spot_pages
from emulator.api.jobs.training_jobs import build_jobs_pages
from emulator.api.jobs.tuning_jobs import build_tuning_jobs_pages
from emulator.api.objects import build_objects_pages
from emulator.api.profiles import build_profiles_pages
from emulator.api.run_readers import RunReaders
from emulator.api.tensorboards import build_tensorboards_pages
from emulator.api.tensors import build_tensors_pages

# The questions of one address are told apart there.
QUESTIONS = "/_emulator/jobs/<region>/<name>/tensors/"
OF_THE_DOCUMENT = {("GET", "/_emulator/openapi.json"), ("GET", "/_emulator/docs"), ("GET", "/")}


def test_the_table_has_every_address_and_no_other() -> None:
    accounts, readers = cast("RequestAccounts", None), cast("RunReaders", None)
    unused: Any = None
    pages = build_pages(
        dict,
        [
            build_jobs_pages(accounts),
            build_tags_pages(accounts),
            build_names_pages(accounts),
            build_processing_jobs_pages(accounts),
            build_tuning_jobs_pages(accounts),
            build_pipeline_executions_pages(accounts),
            build_tensors_pages(accounts, readers, unused),
            build_profiles_pages(accounts, readers, unused),
            build_tensorboards_pages(accounts, unused),
            build_objects_pages(accounts),
            build_job_exports_pages(accounts),
            build_changes_pages(accounts, Streams(), unused),
            build_spot_pages(unused),
            build_fault_pages(),
            build_state_pages(unused, unused, unused, unused, unused),
            build_prune_pages(unused),
            build_authority_pages(None),
            build_openapi_pages("1"),
        ],
    )
    answered = {
        (method, rule.rule)
        for rule in pages.url_map.iter_rules()
        for method in (rule.methods or set()) & {"GET", "POST", "PUT", "DELETE"}
    }
    described = {
        (page.method, f"{QUESTIONS}<question>" if page.path.startswith(QUESTIONS) else page.path) for page in PAGES
    }
    assert answered - OF_THE_DOCUMENT == described


@pytest.mark.nightly  # its schemas are made of types that few changes touch; the next test makes it by day
def test_the_document_is_openapi() -> None:
    from openapi_spec_validator import validate

    validate(build_document("1"))


def test_each_operation_has_a_name_of_its_own() -> None:
    document = build_document("1")
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(names) == len(set(names))


def test_the_page_for_people_names_every_address() -> None:
    text = render_docs()
    assert all(page.path.replace("<", "&lt;").replace(">", "&gt;") in text for page in PAGES)
    assert "<script" not in text
