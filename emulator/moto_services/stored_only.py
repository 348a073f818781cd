"""Record-only SageMaker operations of moto, and the note that answers carry.

Their resources are stored, but nothing runs.
"""

from collections.abc import Iterable
from typing import Any
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

# Operations with these prefixes only create or change a record; the others answer from the records.
_STORING = ("Create", "Start", "Stop", "Update", "Associate", "Disassociate", "Add", "Register")
# The emulator runs the resources of these operations.
_RUN = frozenset({"CreatePipeline", "UpdatePipeline", "DeletePipeline", "DescribePipeline", "ListPipelines"})
NOTE_HEADER = "x-emulator-note"


def describe_fate(operation: str) -> str:
    """Describe how a request is handled whose operation moto answers.

    >>> describe_fate("CreateTransformJob")
    'stored only'
    """
    if operation in _RUN:
        return "stored by moto; StartPipelineExecution runs it"
    return "stored only" if operation.startswith(_STORING) else "answered by moto from what is stored"


def build_note(operation: str) -> str | None:
    """Build the note for an answer of moto; None if the emulator runs the resource."""
    if operation in _RUN:
        return None
    return f"{operation}: {describe_fate(operation)}, nothing is run (docs/coverage.md)"


def noting(application: WSGIApplication, note: str) -> WSGIApplication:
    """Wrap ``application`` to add a note to the header of its answer."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, (NOTE_HEADER, note)], *rest)

        started: Any = start
        return application(environ, started)

    return answer
