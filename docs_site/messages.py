"""Error message reference, generated from the source, with remedies."""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
REMEDIES: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("remedies.toml").read_text(encoding="utf-8")
)
"""Remedies for messages that do not contain one.

``messages`` contains them by the first words of a message, ``refusals`` by the exception or function that receives the
message, and ``clients`` by messages of AWS's clients."""

_PACKAGES = ("emulator", "container_runtime", "sdk_compat")
# Names of the exceptions and functions that receive a message for the user. Errors that only report a defect of this
# code, and messages that only tests show, are excluded.
_REFUSALS = re.compile(r"fail|\w*(Error|Exception|NotFound|InUse|Exceeded|Failure|Exit|Token|Policy|BadParameter)")
_OUR_OWN_FAULTS = re.compile(
    "(Assertion|BrokenChannel|ConnectionAborted|ForbiddenClass|Key|NotADirectory|OS|Protocol|Runtime|SpareLost|Type|"
    "UndeclaredTransition|Unpickling|Value|VulnerabilityFeed)Error"
)
# A part of another message.
_PART = re.compile("(a fault of|it is|it has|it does not|only objects for|the answer (to|was|names)) ?")
_LEFT_OUT = (
    "sdk_compat/emulator_client.py",
    "emulator/gateway/request_schema.py",
    "emulator/jobs/runs/pipelines/pipeline_run.py",
    "emulator/jobs/runs/pipelines/pipeline_steps.py",
    "emulator/jobs/runs/tuning/tuning_job_run.py",
)
_IMPERATIVES = (
    "add|ask|change|choose|close|confirm|correct|create|delete|do|end|export|first delete|free|give|import|install|"
    "leave|load|look|make|move|name a|name another|name it|name its|name one|name the|pass|pip install|please|put|"
    "raise|read|remove|rename|renew|request|run|send|set|smdebug-emulator|start|stop|take|try|unset|upload|use|wait|write"
)
_REMEDY = re.compile(rf"[:.;,] (?:or )?(?=(?:{_IMPERATIVES})\b)", re.IGNORECASE)
SECTIONS = {
    "The emulator does not start": {"StartupError", "SystemExit", "EmulatorStartError"},
    "A command fails": {"fail", "BadParameter", "EndpointError", "EmulatorAnswerError"},
    "A job fails": {"RequestFailure", "ContainerStartError", "ImageNotFoundError", "NetworkExhaustedError"},
    "Engine, images and environments": {
        "ContainerNotFoundError",
        "ContainerRuntimeError",
        "EngineUnavailableError",
        "EnvironmentBuildError",
        "WheelhouseError",
    },
    "An event pattern is rejected, or an event is not delivered": {
        "EventPatternError",
        "ScheduleError",
        "TargetGoneError",
        "TargetInputError",
        "UnsupportedTargetError",
    },
}
_REST = "A request is rejected"


@dataclass(frozen=True, order=True)
class Message:
    """A message in the source code.

    Attributes:
        text: text of the message, with {…} for each inserted value.
        refusal: the exception or function, such as ``fail``, that receives the message.
        path: path of the source file, relative to the checkout.
    """

    text: str
    refusal: str
    path: str

    @property
    def section(self) -> str:
        """The section of the page that lists the message."""
        return next((title for title, refusals in SECTIONS.items() if self.refusal in refusals), _REST)

    @property
    def remedy(self) -> str:
        """The remedy from the table for this message, from the message itself, or from the table for its kind."""
        for words, remedy in REMEDIES["messages"].items():
            if self.text.startswith(words):
                return remedy
        if said := _REMEDY.search(self.text):
            return _escape(_begin_sentence(self.text[said.end() :]))
        return REMEDIES["refusals"].get(self.refusal) or REMEDIES["refusals"]["others"]


def build_messages_page() -> str:
    """Return the page."""
    messages = find_messages()
    lines = [
        "# Troubleshooting",
        "",
        "The emulator's error messages, and what to do about each. Search this page for the words that you see.",
        "A word in {braces} stands for a value. `smdebug-emulator doctor` checks the machine, and",
        "`smdebug-emulator describe JOB` shows a job.",
    ]
    lines += ["", "## Messages of AWS clients", "", "| message | what to do |", "|---|---|"]
    lines += [f"| {_escape(text)} | {remedy} |" for text, remedy in REMEDIES["clients"].items()]
    for title in (*SECTIONS, _REST):
        lines += ["", f"## {title}", "", "| message | what to do |", "|---|---|"]
        lines += [f"| {_escape(message.text)} | {message.remedy} |" for message in messages if message.section == title]
    return "\n".join(lines) + "\n"


@cache
def find_messages() -> list[Message]:
    """Return every message that refuses something, without duplicates."""
    paths = [path for package in _PACKAGES for path in sorted((CHECKOUT / package).rglob("*.py"))]
    found = {message for path in paths for message in _read_messages(path)}
    return sorted(message for message in found if not message.path.startswith(_LEFT_OUT))


def _read_messages(path: Path) -> Iterator[Message]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named: dict[str, ast.expr] = {}
    # In source order, because a message refers to the value that was last assigned to a name.
    for node in sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)):
        if isinstance(node, ast.Assign):
            named |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
        if not isinstance(node, ast.Call):
            continue
        refusal = _name_last(node.func)
        if _REFUSALS.fullmatch(refusal) and not _OUR_OWN_FAULTS.fullmatch(refusal):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                value = named.get(argument.id, argument) if isinstance(argument, ast.Name) else argument
                text = _format_template(value)
                if text is None or _PART.match(text):
                    continue
                if len(re.sub(r"\{.*?\}", "", text).split()) > 2:
                    yield Message(" ".join(text.split()), refusal, str(path.relative_to(CHECKOUT)))


def _name_last(called: ast.expr) -> str:
    """Return the last name of a dotted name, and nothing for any other expression."""
    return called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""


def _format_template(node: ast.expr) -> str | None:
    """Return the text of a string, with {…} for each value that an f-string inserts; None for any other expression."""
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
    """Return a word for an inserted value: the last name in its expression."""
    names = re.findall(r"[A-Za-z_]\w*", ast.unparse(part)) or ["…"]
    last: str = names[-1]
    return last.strip("_").replace("_", " ").lower()


def _begin_sentence(text: str) -> str:
    is_command = text.startswith(("pip ", "smdebug-emulator "))
    return text if is_command else text[0].upper() + text[1:]


def _escape(text: str) -> str:
    return re.sub(r"([|<>*_\[\]])", r"\\\1", text)
