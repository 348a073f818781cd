"""Warnings of a job: the record, its codes, and the report file. Pure."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MOST_WARNINGS = 100
"""Of one job; further ones are in its log only."""
MOST_REPORTED_BYTES = 1 << 16
"""What is read of the file in which a container reports its warnings."""
WARNINGS_HEADER = "x-smdebug-emulator-warnings"
"""Of the answers to CreateTrainingJob and CreateProcessingJob: the warnings that are known by then, as JSON."""

_MAX_TEXT = 1000


@dataclass(frozen=True, slots=True)
class WarningKind:
    """What all warnings of a code have in common.

    Attributes:
        meaning: when there is such a warning, for the documentation.
        text: a template of the warning's text; a container's report has its own text as ``said``.
        remedy: what the reader can do.
        reported: whether containers may report it.
        substitutes: whether it says what runs in place of something requested. The first sentence of its text says so
            in brief, for lists of jobs.
    """

    meaning: str
    text: str
    remedy: str
    reported: bool = False
    substitutes: bool = False


_REPORTED = "{said}"

WARNING_KINDS: Mapping[str, WarningKind] = {
    "ImageSubstituted": WarningKind(
        "The image runs another version of the framework than the one that was asked for.",
        "{said}",
        "Request an available version, load an image of exactly that name into Docker, or start the emulator with "
        "--strict-versions to have such jobs refused.",
        substitutes=True,
    ),
    "NoGpu": WarningKind(
        "The instance type has GPUs, and the containers of this emulator get none.",
        "{instance_type}: no GPU here. The job runs on the CPU.",
        "Let the script choose its device by what it finds, such as torch.cuda.is_available(), and expect longer times "
        "than on AWS; or use a Docker engine with the NVIDIA runtime.",
        substitutes=True,
    ),
    "ContainerStarved": WarningKind(
        "A profiled training often waited for a core while other work on its machine used it.",
        "On {host}, the training waited for a core in {percent} % of the time while other work on the machine used it: "
        "the times of its steps, and what profiler rules find, are those of a busy machine.",
        "Run fewer jobs at once (start --max-jobs), or less beside them, and profile it again.",
    ),
    "ClientNotTried": WarningKind(
        "The request came from a version of a SageMaker SDK that was never tried with the emulator.",
        "{said}",
        "Install a version that was tried if something goes wrong.",
    ),
    "HookSavedNothing": WarningKind(
        "The job configures a hook that saved no tensors, or none of a kind that was asked for.",
        "The job asks for tensors, and none were saved.",
        "Check that the script trains a model of a supported framework, that a step of the save configuration was "
        "reached, and that each collection selects something.",
        reported=True,
    ),
    "HookParameterIgnored": WarningKind(
        "A parameter of the hook or of a collection is not known, is overruled by another, or does nothing.",
        _REPORTED,
        "Correct the parameter in DebugHookConfig, or remove it.",
        reported=True,
    ),
    "HookParameterDoubtful": WarningKind(
        "A value of DebugHookConfig cannot be read or does nothing, or a collection has nearly the name of a built-in "
        "one.",
        "DebugHookConfig: {said}",
        "Correct DebugHookConfig. AWS accepts such a request as well, and the hook refuses or ignores this in the "
        "training.",
    ),
    "RuleDoubtful": WarningKind(
        "There is no built-in rule of the name that a rule configuration invokes, or the rule has no such parameter or "
        "does not take its value, or its image is not there.",
        _REPORTED,
        "Correct the rule configuration; `smdebug-emulator rules list` has the names, `rules show RULE` the "
        "parameters. AWS accepts such a request as well, and the rule's evaluation ends in Error.",
    ),
    "TensorsDropped": WarningKind(
        "Something that was to be saved could not be saved; the training went on.",
        _REPORTED,
        "The log of the training has the error at the step where it first happened.",
        reported=True,
    ),
    "WorkerNotUnique": WarningKind(
        "Two hosts saved tensors as the same worker.",
        "{first} and {second} both save tensors as {worker}. Of each step, only the files of the host that saved it "
        "first are in S3; on AWS, the hosts overwrite each other's.",
        "Start the script as one training of all hosts, with torch.distributed or Horovod, so that each process has "
        "a rank of its own; or save tensors on one host only.",
    ),
    "RuleHadLittleToJudge": WarningKind(
        "A rule found no issue, and had values in fewer than half of the saved steps of each mode, or in one only.",
        _REPORTED,
        "Save the rule's collections more often (save_interval), or train for more steps.",
        reported=True,
    ),
    "RuleWithoutCollection": WarningKind(
        "A rule found no issue because the tensors that it looks at were not saved.",
        _REPORTED,
        "Have DebugHookConfig save the tensors that the rule looks at; `smdebug-emulator rules show RULE` has an "
        "example with its collection.",
        reported=True,
    ),
    "RuleWithoutHook": WarningKind(
        "The request has rules that read tensors, and no DebugHookConfig to save any.",
        "{rules} will read tensors, and the request has no DebugHookConfig: none are saved unless the script makes a "
        "hook that writes to /opt/ml/output/tensors.",
        "Add DebugHookConfig with S3OutputPath and the CollectionConfigurations of the rules, which `smdebug-emulator "
        "rules show RULE` names. The SageMaker SDK adds one by itself.",
    ),
    "RequirementsNotInstalled": WarningKind(
        "pip could not install the requirements.txt of the training script or of a custom rule.",
        "The requirements.txt of the script could not be installed: {said}",
        "Start the emulator with --allow-internet (pytest: --sagemaker-allow-internet), or put the wheels beside "
        "requirements.txt and name them there by their paths.",
        reported=True,
    ),
    "EventTargetFailed": WarningKind(
        "A function, or another target, failed with an event of the job, such as one that is to stop it.",
        "{name} failed with an event of this job: {said}",
        "The job's page in the console has what a target answered to each event, and the log of a function.",
    ),
    "MetricNeverMatched": WarningKind(
        "The regular expression of a metric matched no line of the log.",
        "The metric {name!r} has no value: its Regex {regex!r} captured a number in no line of the log.",
        "Compare the Regex in MetricDefinitions with the lines of the log; its first group has to be the number.",
    ),
}


@dataclass(frozen=True, slots=True)
class JobWarning:
    """One warning of a job; the same one twice is one."""

    code: str
    text: str
    remedy: str

    @property
    def line(self) -> str:
        """The warning as one line of a log."""
        return f"{self.text} {self.remedy}"

    @property
    def brief(self) -> str:
        """What runs in place of something requested, such as "asked 2.3.0, runs 2.13.0"; empty for other warnings."""
        kind = WARNING_KINDS.get(self.code)
        return self.text.partition(". ")[0].removesuffix(".") if kind and kind.substitutes else ""


def build_warning(code: str, **details: str) -> JobWarning:
    """Build a warning of a code of ``WARNING_KINDS``; ``details`` fill in the code's text."""
    kind = WARNING_KINDS[code]
    return JobWarning(code, _clean(kind.text.format(**details)), kind.remedy)


def parse_reported(content: bytes) -> list[JobWarning]:
    """Parse what a container reported: a JSON object with ``Code`` and ``Text`` in each line.

    The file is the container's to write: lines that are nothing of the kind, or not whole yet, are left out, and what
    is said twice counts once.
    """
    lines, _, _ = content.rpartition(b"\n")
    found = filter(None, map(_parse_line, lines.splitlines()))
    return list(dict.fromkeys(found))[:MOST_WARNINGS]


def _parse_line(line: bytes) -> JobWarning | None:
    try:
        report = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match report:
        case {"Code": str() as code, "Text": str() as text} if code in WARNING_KINDS and WARNING_KINDS[code].reported:
            text = _clean(text)
            return JobWarning(code, text, WARNING_KINDS[code].remedy) if text else None
    return None


def _clean(text: str) -> str:
    """Make one line of a text, without what cannot be printed or stored, such as halves of surrogate pairs."""
    words = " ".join(text.encode(errors="backslashreplace").decode().split())
    printable = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in words)
    return printable if len(printable) <= _MAX_TEXT else f"{printable[: _MAX_TEXT - 1]}…"


def describe_warnings(warnings: Iterable[JobWarning]) -> list[dict[str, str]]:
    """Describe warnings as every answer of the emulator that has some does."""
    return [{"code": each.code, "text": each.text, "remedy": each.remedy, "brief": each.brief} for each in warnings]


def build_header(warnings: Iterable[JobWarning]) -> dict[str, str]:
    """Build the header of the answer to the creation of a job, in ASCII; none without a warning."""
    described = describe_warnings(warnings)
    return {WARNINGS_HEADER: json.dumps(described)} if described else {}
