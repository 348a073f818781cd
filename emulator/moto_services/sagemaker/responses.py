"""SageMaker operations: requests as moto reads them, and answers of ours."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from emulator.exceptions import ValidationException
from emulator.moto_services.replacements import replaced

Answer = Callable[[Any], Any]
"""Takes moto's response object, which holds the request, and returns what moto encodes."""


def answering(answers: Mapping[str, Answer]) -> AbstractContextManager[None]:
    """Answer operations, by the names of moto's methods, with functions of ours."""
    from moto.sagemaker.responses import SageMakerResponse

    return replaced(SageMakerResponse, **{name: _as_method(answer) for name, answer in answers.items()})


def read_member(response: Any, member: str) -> Any:
    """Return a member of the request; None if it is absent."""
    return response._get_param(member)  # noqa: SLF001 - moto has no other


def build_answer(content: Mapping[str, Any] | None = None) -> Any:
    """Build an answer with these members, or an empty one."""
    from moto.core.responses import ActionResult, EmptyResult

    return EmptyResult() if content is None else ActionResult(dict(content))


def cut_page(response: Any, listed: str, entries: Sequence[Any], size: int) -> dict[str, Any]:
    """Return the page that a request names by ``NextToken`` and ``MaxResults``, and the token of the next one.

    Args:
        response: moto's response object.
        listed: the member of the answer that has the entries.
        entries: of all pages, in their order.
        size: of a page where the request does not say.

    Raises:
        ValidationException: the token is not one of ours.
    """
    token = read_member(response, "NextToken") or "0"
    if not token.isdecimal():
        raise ValidationException("The NextToken is invalid: give the one of the last answer.")
    first = int(token)
    end = first + int(read_member(response, "MaxResults") or size)
    more = {"NextToken": str(end)} if end < len(entries) else {}
    return {listed: entries[first:end], **more}


def _as_method(answer: Answer) -> Answer:
    return lambda response: answer(response)  # a partial is not a method
