"""API field coverage: ``python -m docs_site.coverage`` prints docs/coverage.md.

Each operation declares in ``emulator.operations.members`` which members it acts on, and which it refuses, with the
reason. If it declares nothing, it acts on all members. The service model determines the other cases: a member that the
response of the matching Describe operation contains is echoed, and any other member has no effect. A path includes all
members below it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, cast

from botocore import __version__, xform_name

from docs_site.client_operations import read_lists
from emulator.moto_services.replacements import REPLACED
from emulator.moto_services.stored_only import NOTE_HEADER, describe_fate
from emulator.moto_services.wsgi import has_sagemaker_operation
from emulator.operations import find_operations
from emulator.operations.members import find_members
from emulator.service_model import load_service_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from botocore.model import ListShape, Shape, StructureShape

ACTED_ON, ECHOED, NO_EFFECT = "acted on", "echoed", "no effect"

_INTRODUCTION = """\
# What becomes of a request's members

Generated from the model of botocore {version} by `python -m docs_site.coverage > docs/coverage.md`; a test compares.

Every request to SageMaker is checked against the model first: types, required members, lengths, ranges, enums and
patterns. A member that the model does not have is left alone, as on AWS. Of what the model has,

- *acted on* is what something is done with; if Describe shows it on AWS, it does here,
- *echoed* is what Describe returns unchanged; it may be validated or compared with other jobs, as for a warm pool, but
  it does not change how the job runs, and
- *refused* is what gets an error that says why. Nothing is accepted and dropped; a test looks.

A member stands for all that is in it, where all of that fares alike.
"""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a request.

    Attributes:
        path: the names of the enclosing members and the member's own name, joined by dots; list entries have no name.
        fate: the effect of the member: ``ACTED_ON``, ``ECHOED``, ``NO_EFFECT``, or ``refused`` with the reason.
        is_leaf: whether the member contains no other members.
    """

    path: str
    fate: str
    is_leaf: bool


def list_members(operation: str) -> list[Member]:
    """List all members of a request of one of the emulator's own operations, in the order of the service model."""
    model = load_service_model()
    shape = model.operation_model(operation).input_shape
    declared = find_members(find_operations()[operation])
    refuses, acts_on = declared.refuses, declared.acts_on
    shown = (
        set(_walk(model.operation_model(describer).output_shape)) if (describer := find_describer(operation)) else {}
    )
    found = []
    for path, is_leaf in _walk(shape).items() if shape else ():
        stands_in = {path, *_list_parents(path)}
        if reason := next((refuses[each] for each in refuses if each in stands_in), None):
            fate = f"refused: {reason}"
        elif acts_on is None or stands_in & acts_on:
            fate = ACTED_ON
        else:
            fate = ECHOED if path in shown else NO_EFFECT
        found.append(Member(path, fate, is_leaf))
    return found


def find_describer(operation: str) -> str | None:
    """Return the Describe operation that shows the request of ``operation``; None if there is none."""
    for verb in ("Create", "Update"):
        if operation.startswith(verb):
            name = f"Describe{operation.removeprefix(verb)}"
            return name if name in find_operations() else None
    return None


def _walk(shape: Shape | None, path: str = "", inside: tuple[str, ...] = ()) -> dict[str, bool]:
    """Return all paths below ``shape``, and whether each is a leaf; a recursive shape is entered only once."""
    while shape is not None and shape.type_name == "list":
        shape = cast("ListShape", shape).member
    if shape is None or shape.type_name != "structure" or shape.name in inside:
        return {}
    found: dict[str, bool] = {}
    for name, member in cast("StructureShape", shape).members.items():
        where = f"{path}.{name}" if path else name
        below = _walk(member, where, (*inside, shape.name))
        found[where] = not below
        found |= below
    return found


def _list_parents(path: str) -> Iterator[str]:
    while "." in path:
        path = path.rpartition(".")[0]
        yield path


def _join_alike(members: list[Member]) -> list[Member]:
    """Replace all members inside a member with the member itself, if they all have the same fate."""
    joined: list[Member] = []
    for member in members:
        if joined and member.path.startswith(f"{joined[-1].path}."):
            continue
        fates = {each.fate for each in members if each.is_leaf and f"{each.path}.".startswith(f"{member.path}.")}
        if len(fates) == 1:
            joined.append(Member(member.path, fates.pop(), is_leaf=True))
    return joined


def build_page() -> str:
    """Return the text of ``docs/coverage.md``."""
    lines = [_INTRODUCTION.format(version=__version__), "## Operations of the emulator"]
    ours = sorted(find_operations())
    for operation in ours:
        lines += ["", f"### {operation}", ""]
        members = _join_alike(list_members(operation))
        if {member.fate for member in members} == {ACTED_ON}:
            lines.append("Every member is acted on.")
            continue
        lines += ["| member | what becomes of it |", "|---|---|"]
        lines += [f"| {member.path} | {member.fate} |" for member in members]
    others = [name for name in load_service_model().operation_names if name not in ours]
    added = {row.name for row in REPLACED if row.owner.endswith(":SageMakerResponse") and row.parameters == "new"}
    moto = [name for name in others if has_sagemaker_operation(xform_name(name)) or xform_name(name) in added]
    lines += [
        "",
        "## Operations of moto",
        "",
        "Their requests are checked as all are; what they ask for does not happen. Each answer says so in its header",
        f"`{NOTE_HEADER}` (boto3 has it in `ResponseMetadata.HTTPHeaders`), and so does the log, once an operation.",
        "",
    ]
    lines += ["| operation | what becomes of it |", "|---|---|"]
    lines += [f"| {name} | {describe_fate(name)} |" for name in moto]
    missing = [name for name in others if name not in moto]
    lines += ["", "## Operations that nobody answers", ""]
    lines.append(f"{len(missing)} operations get an UnknownOperationException that says so:")
    lines += ["", *(f"- {', '.join(names)}" for _, names in groupby(missing, _read_verb))]
    fates = dict.fromkeys(ours, "answered by the emulator") | {name: describe_fate(name) for name in moto}
    lines += _build_sdk_table(fates)
    return "\n".join(lines) + "\n"


def _build_sdk_table(fates: Mapping[str, str]) -> list[str]:
    lists = read_lists()
    lines = [
        "",
        "## What the Python SDKs, a walk of the AWS CLI and Terraform call",
        "",
        "Found in their source by `python -m docs_site.client_operations FOLDER`: calls of clients, names of methods,",
        "and `create`, `get` and `get_all` of SageMaker Core's resource classes. Those classes have a method for every",
        "operation; these are not listed. The AWS CLI and the AWS SDK for JavaScript have a command for each of them,",
        "and the sections above hold for both; the CLI's column is the walk in `tests/clients/aws_cli`. What",
        "Terraform's provider calls was read from its log of `tests/clients/test_terraform.py`, which applies and",
        "destroys the resources in `tests/clients/terraform`. Its",
        "other resources call the operations of their names, of which the sections above tell.",
        "",
        f"| operation | {' | '.join(lists)} | what becomes of it |",
        f"|---|{'---|' * len(lists)}---|",
    ]
    for name in sorted(set().union(*lists.values())):
        called = " | ".join("calls" if name in names else "" for names in lists.values())
        lines.append(f"| {name} | {called} | {fates.get(name, 'UnknownOperationException')} |")
    return lines


def _read_verb(operation: str) -> str:
    return operation[: next(i for i, letter in enumerate(operation) if i and letter.isupper())]


if __name__ == "__main__":
    sys.stdout.write(build_page())
