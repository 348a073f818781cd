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
# Of a sentence, and of a text that was cut.
_ENDS = (".", "!", "?", "…")

WARNING_KINDS: Mapping[str, WarningKind] = {
    "ImageSubstituted": WarningKind(
        "The image has another version of the framework than the requested one.",
        "{said}",
        "Request an available version, or load an image with exactly the requested name into Docker. To have such jobs "
        "refused, start the emulator with --strict-versions.",
        substitutes=True,
    ),
    "NoGpu": WarningKind(
        "The instance type has GPUs, but the emulator's containers do not get any.",
        "{instance_type}: no GPU here. The job runs on the CPU.",
        "Let the script use a GPU only if there is one (torch.cuda.is_available()), and expect it to take longer than "
        "on AWS. Or use a Docker engine with the NVIDIA runtime.",
        substitutes=True,
    ),
    "ContainerStarved": WarningKind(
        "A profiled training often waited for a CPU core that other work on the machine was using.",
        "On {host}, the training waited for a core in {percent} % of the time while other work on the machine used it. "
        "The step times, and the findings of profiler rules, are those of a busy machine.",
        "Run fewer jobs at once (start --max-jobs), or less other work, and profile the training again. Jobs in local "
        "processes yield to other programs, unless the emulator was started with SMDEBUG_EMULATOR_JOB_NICENESS=0.",
    ),
    "ClientNotTried": WarningKind(
        "The request came from a version of a SageMaker SDK that was not tested with the emulator.",
        "{said}",
        "If something goes wrong, install a tested version.",
    ),
    "HookSavedNothing": WarningKind(
        "The job configures a hook, but it saved no tensors, or none of a requested kind.",
        "The job asks for tensors, but none were saved.",
        "Check that the script trains a model of a supported framework, that the training reached a step at which the "
        "hook saves, and that each collection matches some tensors.",
        reported=True,
    ),
    "HookParameterIgnored": WarningKind(
        "A parameter of the hook or of a collection is unknown, is overridden by another, or has no effect.",
        _REPORTED,
        "Correct the parameter in DebugHookConfig, or remove it.",
        reported=True,
    ),
    "HookParameterDoubtful": WarningKind(
        "A value of DebugHookConfig is invalid or has no effect, or a collection's name is similar to that of a "
        "built-in one.",
        "DebugHookConfig: {said}",
        "Correct DebugHookConfig. AWS accepts such a request, too; in the training, the hook then rejects or ignores "
        "the value.",
    ),
    "RuleDoubtful": WarningKind(
        "A rule configuration invokes a rule that does not exist, gives it a parameter that it does not have or a "
        "value that it does not accept, or uses an image that does not exist.",
        _REPORTED,
        "Correct the rule configuration: `smdebug-emulator rules list` lists the rules, `rules show RULE` their "
        "parameters. AWS accepts such a request, too; the rule's evaluation then ends with Error.",
    ),
    "TensorsDropped": WarningKind(
        "Some tensors could not be saved. The training continued.",
        _REPORTED,
        "Look for the error in the training's log, at the step where it first happened.",
        reported=True,
    ),
    "WorkerNotUnique": WarningKind(
        "Two hosts saved tensors as the same worker.",
        "{first} and {second} both save tensors as {worker}. For each step, S3 has only the files of the host that "
        "saved it first; on AWS, the hosts overwrite each other's files.",
        "Start the script as one distributed training of all hosts (torch.distributed, Horovod), so that each process "
        "has its own rank. Or save tensors on one host only.",
    ),
    "RuleHadLittleToJudge": WarningKind(
        "A rule found no issue, but it had values in fewer than half of the saved steps of each mode, or in a single "
        "step, or in too few steps, or steps too near or too far apart, for it to fire.",
        _REPORTED,
        "Save the rule's collections more often (save_interval), train for more steps, or change the rule's parameter "
        "that its verdict names, such as num_steps or patience.",
        reported=True,
    ),
    "RuleWithoutCollection": WarningKind(
        "A rule found no issue because the tensors that it inspects were not saved.",
        _REPORTED,
        "Save the tensors that the rule inspects, with DebugHookConfig: `smdebug-emulator rules show RULE` prints an "
        "example with its collection.",
        reported=True,
    ),
    "RuleWithoutHook": WarningKind(
        "The request has rules that read tensors, but no DebugHookConfig to save any.",
        "{rules} will read tensors, but the request has no DebugHookConfig: no tensors are saved unless the script "
        "creates a hook that writes to /opt/ml/output/tensors.",
        "Add DebugHookConfig with S3OutputPath and the CollectionConfigurations of the rules, which `smdebug-emulator "
        "rules show RULE` prints. The SageMaker SDK adds a DebugHookConfig by itself.",
    ),
    "RequirementsNotInstalled": WarningKind(
        "pip could not install the requirements.txt of the training script or of a custom rule.",
        "The requirements.txt of the script could not be installed: {said}",
        "Start the emulator with --allow-internet (pytest: --sagemaker-allow-internet), or put wheels beside "
        "requirements.txt and list their paths in it.",
        reported=True,
    ),
    "EventTargetFailed": WarningKind(
        "A target of an event of the job failed, such as a function that should stop the job.",
        "{name} failed with an event of this job: {said}",
        "Read the log of a function with `aws logs tail /aws/lambda/FUNCTION`. The job's page in the console has the "
        "answers of all targets, too.",
    ),
    "FunctionNotPermitted": WarningKind(
        "EventBridge invoked a function with an event of the job, but the function's policy does not let it.",
        "The function {name} ran with an event of this job although its policy does not let EventBridge invoke it. On "
        "AWS, it does not run. The missing call is lambda.add_permission(FunctionName='{name}', StatementId='events', "
        "Action='lambda:InvokeFunction', Principal='events.amazonaws.com', SourceArn='{rule}').",
        "Call add_permission where you create the rule (on a shell, `aws lambda add-permission`). "
        "`smdebug-emulator stop-handler deploy` does it by itself.",
    ),
    "MetricNeverMatched": WarningKind(
        "The regular expression of a metric matched no line of the log.",
        "The metric {name!r} has no value: its Regex {regex!r} did not capture a number in any line of the log.",
        "Compare the Regex in MetricDefinitions with the lines of the log. Its first group must capture the number.",
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
    """Build a warning of a code of ``WARNING_KINDS``; ``details`` fill in the code's text.

    The error of another program often ends without a full stop, which the remedy that follows needs.
    """
    kind = WARNING_KINDS[code]
    text = _clean(kind.text.format(**details))
    return JobWarning(code, text if text.endswith(_ENDS) else f"{text}.", kind.remedy)


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
