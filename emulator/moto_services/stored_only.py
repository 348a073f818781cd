"""Record-only SageMaker operations of moto, and the note that answers carry.

Their resources are stored, and nothing of them is run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

# What operations of these names do is keep a record, or change it; the others answer from the records.
_STORING = ("Create", "Start", "Stop", "Update", "Associate", "Disassociate", "Add", "Register")
# The emulator runs what these store.
_RUN = frozenset({"CreatePipeline", "UpdatePipeline", "DeletePipeline", "DescribePipeline", "ListPipelines"})
NOTE_HEADER = "x-emulator-note"


def describe_fate(operation: str) -> str:
    """Say what becomes of a request of an operation that moto answers.

    >>> describe_fate("CreateTransformJob")
    'stored only'
    """
    if operation in _RUN:
        return "stored by moto; StartPipelineExecution runs it"
    return "stored only" if operation.startswith(_STORING) else "answered by moto from what is stored"


def build_note(operation: str) -> str | None:
    """Build the note that an answer of moto gets; None where what it stores is run."""
    if operation in _RUN:
        return None
    return f"{operation}: {describe_fate(operation)}, nothing is run (docs/coverage.md)"


def noting(application: WSGIApplication, note: str) -> WSGIApplication:
    """Return ``application``, with a note in the header of its answer."""

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, (NOTE_HEADER, note)], *rest)

        started: Any = start
        return application(environ, started)

    return answer
