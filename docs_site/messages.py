"""Error message reference, generated from the source, with remedies."""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKOUT = Path(__file__).parents[1]
REMEDIES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("remedies.toml").read_text(encoding="utf-8")
)
"""What to do where a message does not say it: ``messages`` by first words, ``refusals`` by what they are given to,
``clients`` by what AWS's clients say themselves."""

_ROOMS = ("emulator", "container_runtime", "sdk_compat")
# Names of what a message is given to; those of faults in our own code, and what is shown in tests, are left out.
_REFUSALS = re.compile(r"fail|\w*(Error|Exception|NotFound|InUse|Exceeded|Failure|Exit|Token|Policy|BadParameter)")
_OUR_OWN_FAULTS = re.compile(
    "(Assertion|ForbiddenClass|Key|OS|Runtime|Type|UndeclaredTransition|Unpickling|Value)Error"
)
_LEFT_OUT = (
    "sdk_compat/pytest_plugin/emulator.py",
    "emulator/gateway/request_schema.py",
    "emulator/jobs/runs/pipeline_run.py",
    "emulator/jobs/runs/tuning_job_run.py",
)
_IMPERATIVES = (
    "add|ask|choose|close|correct|create|do|end|free|give|install|leave|load|look|make|move|pass|put|"
    "raise|read|rename|remove|run|send|set|start|stop|try|unset|upload|use|wait|write"
)
_REMEDY = re.compile(rf"[:.;,] (?:or )?(?=(?:{_IMPERATIVES})\b)", re.IGNORECASE)
SECTIONS = {
    "The emulator does not start, or cannot build": {"StartupError", "SystemExit", "EmulatorStartError"},
    "A command refuses": {"fail", "BadParameter", "EndpointError", "EmulatorAnswerError"},
    "A job fails": {"RequestFailure", "ContainerStartError", "ImageNotFoundError", "NetworkExhaustedError"},
    "Engine, images and environments": {
        "ContainerNotFoundError",
        "ContainerRuntimeError",
        "EngineUnavailableError",
        "EnvironmentBuildError",
        "WheelhouseError",
    },
    "A pattern of events is refused, or an event not delivered": {
        "EventPatternError",
        "ScheduleError",
        "TargetGoneError",
        "TargetInputError",
        "UnsupportedTargetError",
    },
}
_REST = "A request is refused"


@dataclass(frozen=True, order=True)
class Message:
    """A message of the source.

    Attributes:
        text: with {…} for what is put in.
        refusal: the exception, or ``fail``, that it is given to.
        path: of the source file, from the checkout.
    """

    text: str
    refusal: str
    path: str

    @property
    def section(self) -> str:
        """The part of the page where it stands."""
        return next((title for title, refusals in SECTIONS.items() if self.refusal in refusals), _REST)

    @property
    def remedy(self) -> str:
        """What to do: as the table says of this message, as it says itself, or as the table says of its kind."""
        for words, remedy in REMEDIES["messages"].items():
            if self.text.startswith(words):
                return remedy
        if said := _REMEDY.search(self.text):
            return _escape(_begin_sentence(self.text[said.end() :]))
        return REMEDIES["refusals"].get(self.refusal) or REMEDIES["refusals"]["others"]


def build_messages_page() -> str:
    """Write the page."""
    messages = find_messages()
    lines = [
        "# Troubleshooting",
        "",
        "What the emulator says when it refuses something, and what to do. What stands in {braces} is filled in. This",
        "page is written from the source: search it for the words that you see. `smdebug-emulator doctor` looks at the",
        "machine, `smdebug-emulator describe JOB` at a job.",
    ]
    lines += ["", "## A client says it", "", "| message | what to do |", "|---|---|"]
    lines += [f"| {_escape(text)} | {remedy} |" for text, remedy in REMEDIES["clients"].items()]
    for title in (*SECTIONS, _REST):
        lines += ["", f"## {title}", "", "| message | what to do |", "|---|---|"]
        lines += [f"| {_escape(message.text)} | {message.remedy} |" for message in messages if message.section == title]
    return "\n".join(lines) + "\n"


@cache
def find_messages() -> list[Message]:
    """Every message of a refusal, once."""
    paths = [path for room in _ROOMS for path in sorted((CHECKOUT / room).rglob("*.py"))]
    found = {message for path in paths for message in _read_messages(path)}
    return sorted(message for message in found if not message.path.startswith(_LEFT_OUT))


def _read_messages(path: Path) -> Iterator[Message]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named: dict[str, ast.expr] = {}
    # In the order of the source: what a name was given last is what a refusal after it says.
    for node in sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)):
        if isinstance(node, ast.Assign):
            named |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        if not isinstance(node, ast.Call):
            continue
        refusal = ast.unparse(node.func).rpartition(".")[2]
        if _REFUSALS.fullmatch(refusal) and not _OUR_OWN_FAULTS.fullmatch(refusal):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                value = named.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
                text = _format_template(value)
                if text is not None and len(re.sub(r"\{.*?\}", "", text).split()) > 2:
                    yield Message(" ".join(text.split()), refusal, str(path.relative_to(CHECKOUT)))


def _format_template(node: ast.expr) -> str | None:
    """Text of a string, with {…} for what an f-string puts in; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            f"{{{_name_value(part.value)}}}" if isinstance(part, ast.FormattedValue) else _format_template(part) or ""
            for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _format_template(node.left), _format_template(node.right)
        return None if left is None or right is None else left + right
    return None


def _name_value(part: ast.expr) -> str:
    """Return a word for what is put in: the last name of the expression."""
    names = re.findall(r"[A-Za-z_]\w*", ast.unparse(part)) or ["…"]
    last: str = names[-1]
    return last.strip("_").replace("_", " ").lower()


def _begin_sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def _escape(text: str) -> str:
    return re.sub(r"([|<>*_\[\]])", r"\\\1", text)
